"""The items that train small students: what they learn from decides whether text teaches.

Owns these items, which of them are due, and what is read of them. Doesn't know the test that
compares the students (`cycle.gate.proxy`), nor how any is trained (workers).

    control, where synthetic text was packed      G3, where the candidate would be promoted
    r2/evaluate/proxies/text                      r2/gate/proxies/write-candidate-0/CANDIDATE ...
    r2/evaluate/proxies/arm-mix, arm-real         r2/gate/proxies/arm-candidate/CANDIDATE ...
    r2/evaluate/proxies/mix-7001, real-7001 ...   r2/gate/proxies/candidate-7001/CANDIDATE ...

Both share the text and the students of real text alone; where no control is due, they are items of
the gate. Each step needs what the one before has made, so those of a later one are asked for once
the earlier ones are done.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jupiterd.cycle.base.work_item import Phase, WorkItem, WorkResult
from jupiterd.cycle.data.mixing import share_cap
from jupiterd.cycle.domain.generator import Generator
from jupiterd.cycle.gate.decision import Decision
from jupiterd.cycle.gate.proxy import LEAST_SHARE, Arm, ProxyRun, Taught, too_little_words
from jupiterd.cycle.generation.generation_options import WITHOUT, QuotaPart, pieces_of
from jupiterd.cycle.generation.promotion import GeneratorShare, is_own, writers_of
from jupiterd.cycle.generation.synthetic_share import ControlResult, SyntheticShare, share_after
from jupiterd.cycle.phases.collect import held_out
from jupiterd.cycle.phases.counting_verdict import verdict_before_last
from jupiterd.cycle.phases.filter import uniting
from jupiterd.cycle.phases.generate import writing
from jupiterd.cycle.phases.view import RoundView, item_id
from jupiterd.formats import counted
from jupiterd.ids import ArtifactId, short

if TYPE_CHECKING:
    from jupiterd.cycle.domain.domain import Domain
    from jupiterd.cycle.generation.proxies import Proxies
    from jupiterd.cycle.training.plan import ModelShape

PROXIES = "proxies"
"""What stands in the ids of these items after the phase."""

LEAST_DOCUMENTS = 32
"""Students are scored on so many documents or more, where there are so many."""

_USUAL_TOKENS_PER_BYTE = 0.3


def proxies_in(view: RoundView, domain: "Domain", shape: "ModelShape") -> "Proxies":
    """Return how small students are trained in this cycle."""
    from jupiterd.cycle.generation.proxies import proxies_of  # takes 8 MB, idle or not

    gate = domain.gate
    return proxies_of(shape, view.seed, gate.proxy_noticed_bpb, gate.proxy_seeds)


def synthetic_share(view: RoundView, domain: "Domain") -> SyntheticShare:
    """Return how much of this round's text may be synthetic, as the controls before it decided."""
    ours = is_own(domain.generation.kinds, view.active_generators, view.named_generator)
    start = share_cap(domain.mix_ratio.synthetic_share, is_own=ours)
    controls: list[ControlResult] = []
    for number in range(1, view.round):
        compared = Taught(tuple(_runs(view.completed, number, Phase.EVALUATE))).by_mix
        if compared is not None:
            controls.append(ControlResult(number, compared))
    return share_after(controls, start, share_cap(1.0, is_own=ours))


def control_items(view: RoundView, domain: "Domain", shape: "ModelShape") -> list[WorkItem]:
    """Return what trains small students on the round's text and on real text alone."""
    if not _is_controlled(view, domain):
        return []
    items = [_text(view, domain, shape)]
    if not _is_done(view, items):
        return items
    if not _can_be_scored(view, domain):
        return items
    arms = [_arm(view, domain, shape, arm) for arm in (Arm.MIX, Arm.REAL)]
    items += arms
    return [*items, *_students(view, domain, shape, arms)] if _is_done(view, arms) else items


def teaching_items(view: RoundView, domain: "Domain", shape: "ModelShape") -> list[WorkItem]:
    """Return what trains small students on the candidate's text, where that decides something."""
    if not is_asked(view, domain):
        return []
    is_controlled = _is_controlled(view, domain)
    text = [] if is_controlled else [_text(view, domain, shape)]
    before = [*text, *_writing(view, domain, shape)]
    if not _is_done(view, before) or why_not(view, domain):
        return before
    arms = [_arm(view, domain, shape, arm) for arm in _teaching_arms(view, domain)]
    items = [*before, *arms]
    if not _is_done(view, arms) or wrote_nothing(view, domain):
        return items
    return [*items, *_students(view, domain, shape, arms)]


def is_asked(view: RoundView, domain: "Domain") -> bool:
    """Say whether G3 can change the verdict: all else speaks for the candidate, and it can write.

    Where nobody is to write in this domain, a candidate's text is never trained on.
    """
    judged = verdict_before_last(view)
    would_be_promoted = judged is not None and judged.summary.get("verdict") == Decision.PROMOTE
    return would_be_promoted and not _needless(domain)


def why_not(view: RoundView, domain: "Domain") -> str:
    """Say why no small students are trained on a candidate's text; empty where they can be."""
    if needless := _needless(domain):
        return needless
    arm = view.completed.get(_arm_id(view, domain, Arm.CANDIDATE))
    counts = {} if arm is None else arm.counts
    if counts.get("arm_usable_documents") and not counts.get("arm_synthetic_documents"):
        return "the share of synthetic text leaves no room for any of what it wrote"
    if too_little := _too_little(view, domain):
        return too_little
    if _text_result(view, domain) is not None and not _can_be_scored(view, domain):
        return "there is no real text to score small students on"
    for item in _named(view, Phase.GATE, "write-incumbent"):
        if reason := view.completed[item].summary.get(WITHOUT):
            return f"the generator in force couldn't be had: {reason}"
    return ""


def _too_little(view: RoundView, domain: "Domain") -> str:
    """Say that all arms of G3 have too small a share of generated text; empty where one hasn't."""
    arms = [view.completed.get(_arm_id(view, domain, arm)) for arm in _generated_arms(view, domain)]
    shares = [arm.counts.get("arm_synthetic_share", 1.0) for arm in arms if arm is not None]
    if len(shares) < len(arms) or max(shares) >= LEAST_SHARE or wrote_nothing(view, domain):
        return ""
    return too_little_words(shares[0])


def wrote_nothing(view: RoundView, domain: "Domain") -> str:
    """Say what became of the candidate's text where none of it may be trained on; else empty."""
    arm = view.completed.get(_arm_id(view, domain, Arm.CANDIDATE))
    counts = {} if arm is None else arm.counts
    if counts.get("arm_usable_documents", counts.get("arm_synthetic_documents", 1)):
        return ""
    written = _named(view, Phase.GATE, "write-candidate")
    prompts = sum(view.completed[item].counts.get("prompts", 0) for item in written)
    return f"nothing that it wrote to {counted(round(prompts), 'prompt')} passes the filters"


def runs_of_round(view: RoundView, domain: "Domain", *, last: bool) -> dict[str, ArtifactId]:
    """Return the small students of the round that a verdict tells of, as inputs of the gate.

    last: those that learned from the candidate's text, too, where some can be compared
    """
    found = _student_ids(view.completed, view.round, Phase.EVALUATE)
    if last and not _untrained(view, domain):
        found += _student_ids(view.completed, view.round, Phase.GATE, view.candidate or "")
    return {
        f"{PROXIES}.{number}": view.completed[item].outputs["run"]
        for number, item in enumerate(found)
    }


def teaching_params(view: RoundView, domain: "Domain", *, last: bool) -> dict[str, str]:
    """Return what the gate is told of small students that there aren't; see `runs_of_round`."""
    params = {
        "why_not": _untold(view, domain) if last else _needless(domain),
        "wrote_nothing": wrote_nothing(view, domain) if last else "",
    }
    return {name: text for name, text in params.items() if text}


def _untold(view: RoundView, domain: "Domain") -> str:
    return why_not(view, domain) or _untrained(view, domain)


def _untrained(view: RoundView, domain: "Domain") -> str:
    """Say why the students that were asked for can't be compared; empty where some can.

    A seed is compared where both arms have its student.
    """
    has_generator = any(_generator_in_force(view, kind) for kind in domain.generation.kinds)
    theirs = Arm.GENERATOR if has_generator else Arm.REAL
    arms = [_students_of(view, domain, arm) for arm in (Arm.CANDIDATE, theirs)]
    trained = [{seed for seed, done in arm.items() if "run" in done.outputs} for arm in arms]
    if set.intersection(*trained):
        return ""
    reasons = (str(done.summary.get(WITHOUT, "")) for arm in arms for done in arm.values())
    first = next(filter(None, reasons), "")
    return first and f"small students couldn't be trained: {first}"


def _students_of(view: RoundView, domain: "Domain", arm: Arm) -> dict[str, WorkResult]:
    """Return what came of an arm's students, by seed."""
    first = f"{arm}-"
    phase = _phase_of(view, domain, arm)
    if phase is Phase.GATE:
        found = _named(view, phase, str(arm))
    else:
        start = _id(view, phase, first)
        found = sorted(name for name in view.completed if name.startswith(start))
    return {n.split("/")[3].removeprefix(first): view.completed[n] for n in found}


def _needless(domain: "Domain") -> str:
    if domain.gate.proxies == "off":
        return "not needed: the domain's gate.proxies are off"
    if not domain.generation.templates:
        return "not needed: this domain has no templates, so a promoted student writes nothing"
    if domain.mix_ratio.synthetic_share == 0:
        return "not needed: this domain wants no synthetic text"
    return ""


def _is_controlled(view: RoundView, domain: "Domain") -> bool:
    """Say whether the round has enough synthetic text for a control to show anything."""
    packed = view.completed.get(item_id(view.round, Phase.PACK, 0))
    if packed is None or not packed.counts.get("synthetic_documents"):
        return False
    whole_bytes = packed.counts.get("bytes", 0.0)
    # Older packings don't say how much of it is synthetic.
    enough = packed.counts.get("synthetic_bytes", whole_bytes) >= LEAST_SHARE * whole_bytes
    return enough and domain.gate.proxies != "off"


def _home(view: RoundView, domain: "Domain") -> Phase:
    """Return the phase of what both questions need."""
    return Phase.EVALUATE if _is_controlled(view, domain) else Phase.GATE


def _id(view: RoundView, phase: Phase, what: str) -> str:
    name = f"r{view.round}/{phase}/{PROXIES}/{what}"
    return f"{name}/{short(view.candidate or '')}" if phase is Phase.GATE else name


def _arm_id(view: RoundView, domain: "Domain", arm: Arm) -> str:
    return _id(view, _phase_of(view, domain, arm), f"arm-{arm}")


def _phase_of(view: RoundView, domain: "Domain", arm: Arm) -> Phase:
    shared = {Arm.MIX: Phase.EVALUATE, Arm.REAL: _home(view, domain)}
    return shared.get(arm, Phase.GATE)


def _named(view: RoundView, phase: Phase, what: str) -> list[str]:
    """Return the finished items of this round, and of this candidate, that are called so."""
    first = f"r{view.round}/{phase}/{PROXIES}/{what}-"
    last = f"/{short(view.candidate or '')}"
    return sorted(n for n in view.completed if n.startswith(first) and n.endswith(last))


def _is_done(view: RoundView, items: Sequence[WorkItem]) -> bool:
    return all(item.id in view.completed for item in items)


def _text_result(view: RoundView, domain: "Domain") -> WorkResult | None:
    return view.completed.get(_id(view, _home(view, domain), "text"))


def _can_be_scored(view: RoundView, domain: "Domain") -> bool:
    found = _text_result(view, domain)
    return found is not None and found.counts.get("yardstick_documents", 1) > 0


def _text(view: RoundView, domain: "Domain", shape: "ModelShape") -> WorkItem:
    proxies = proxies_in(view, domain, shape)
    params: dict[str, Any] = {
        "real_bytes": round(proxies.tokens / _per_byte(view)),
        "scored_bytes": proxies.scored_bytes,
        "limits": _limits(domain, proxies),
        "seed": view.seed,
        "purged": sorted(view.purged),
    }
    if _is_controlled(view, domain):
        share = synthetic_share(view, domain).share
        params["packed"] = {"synthetic_share": share, "seed": view.seed}
    inputs = {"kept": view.completed[uniting(view)].outputs["kept"], **held_out(view, domain)}
    phase = _home(view, domain)
    return WorkItem(_id(view, phase, "text"), phase, "choose_proxy_text", params, inputs)


def _per_byte(view: RoundView) -> float:
    """Return how many tokens a byte of the round's text has."""
    packed = view.completed[item_id(view.round, Phase.PACK, 0)]
    return packed.counts.get("tokens_per_byte") or _USUAL_TOKENS_PER_BYTE


def _limits(domain: "Domain", proxies: "Proxies") -> dict[str, int]:
    """Return what of each document is scored: little of many, since a few alone are noise."""
    asked = domain.evaluation
    least, most = asked.min_document_bytes, proxies.scored_bytes // LEAST_DOCUMENTS
    return asked.limits() | {"max_document_bytes": max(least, min(asked.max_document_bytes, most))}


def _writing(view: RoundView, domain: "Domain", shape: "ModelShape") -> Iterator[WorkItem]:
    """Yield what both contestants are to write: of the same documents, by the same templates."""
    templates = domain.generation.templates
    prompts = max(1, proxies_in(view, domain, shape).prompts // len(templates))
    bounded = [
        template.model_copy(update={"samples": min(template.samples, prompts)})
        for template in templates
    ]
    artifact = ArtifactId(view.candidate or "")
    candidate = Generator(short(artifact), artifact)
    for number, piece in enumerate(
        pieces_of(bounded, lambda _: (GeneratorShare(candidate, 1.0),), 0.0)
    ):
        yield _written(view, domain, Arm.CANDIDATE, number, piece)
        if generator := _generator_in_force(view, piece.template.kind):
            theirs = replace(piece, generator=generator)
            yield _written(view, domain, Arm.GENERATOR, number, theirs)


def _generator_in_force(view: RoundView, template: str) -> Generator | None:
    """Return who writes most of a template now; None where nobody does."""
    writers = writers_of(template, view.active_generators, view.named_generator)
    return writers[0].generator if writers else None


def _written(
    view: RoundView, domain: "Domain", arm: Arm, number: int, piece: QuotaPart
) -> WorkItem:
    name = _id(view, Phase.GATE, f"write-{arm}-{number}")
    return writing(view, domain, WorkItem(name, Phase.GATE, "generate"), number, piece)


def _teaching_arms(view: RoundView, domain: "Domain") -> list[Arm]:
    """Return the arms of G3 that aren't there anyway."""
    if any(_generator_in_force(view, kind) for kind in domain.generation.kinds):
        return [Arm.CANDIDATE, Arm.GENERATOR]
    return [Arm.CANDIDATE] if _is_controlled(view, domain) else [Arm.CANDIDATE, Arm.REAL]


def _generated_arms(view: RoundView, domain: "Domain") -> list[Arm]:
    return [arm for arm in _teaching_arms(view, domain) if arm is not Arm.REAL]


def _arm(view: RoundView, domain: "Domain", shape: "ModelShape", arm: Arm) -> WorkItem:
    """Return what packs the text of one arm; all have the same real text."""
    text = _text_result(view, domain)
    if text is None:
        raise KeyError(f"the text of round {view.round}'s small students")
    proxies = proxies_in(view, domain, shape)
    params = {
        "language": domain.language,
        "license_policy": domain.license_policy.model_dump(mode="json"),
        "rules_off": sorted(domain.filters.off),
        "seq_len": proxies.shape.seq_len,
        "synthetic_share": synthetic_share(view, domain).share,
        "seed": view.seed,
        "purged": sorted(view.purged),
    }
    first = item_id(1, Phase.PACK, 0)
    inputs = {
        "real": text.outputs["real"],
        "yardstick": text.outputs["yardstick"],
        "tokenizer": view.completed[first].outputs["tokenizer"],
        **held_out(view, domain),
        **_generated(view, arm, text),
    }
    return WorkItem(
        _arm_id(view, domain, arm), _phase_of(view, domain, arm), "pack_arm", params, inputs
    )


def _generated(view: RoundView, arm: Arm, text: WorkResult) -> dict[str, ArtifactId]:
    if arm is Arm.MIX:
        return {"samples": text.outputs["synthetic"]}
    written = _named(view, Phase.GATE, f"write-{arm}")
    outputs = (view.completed[item].outputs for item in written)
    return {
        f"samples.{number}": each["samples"]
        for number, each in enumerate(outputs)
        if "samples" in each
    }


def _students(
    view: RoundView, domain: "Domain", shape: "ModelShape", arms: Sequence[WorkItem]
) -> Iterator[WorkItem]:
    """Yield the training of each arm's students, which are scored in the end."""
    proxies = proxies_in(view, domain, shape)
    text = _text_result(view, domain)
    packed = view.completed[item_id(1, Phase.PACK, 0)]
    tokens = 0 if text is None else round(text.counts.get("proxy_bytes", 0) * _per_byte(view))
    for packing in arms:
        arm = packing.id.split("/")[3].removeprefix("arm-")
        for seed in proxies.seeds:
            plan = proxies.plan(seed, tokens)
            params = {
                "arm": arm,
                "seed": seed,
                "shape": proxies.shape.to_plain(),
                "plan": plan.to_plain(),
                "round": view.round,
                "spread_bpb": proxies.spread_after(plan),
                "limits": _limits(domain, proxies),
            }
            inputs = {
                "shards": view.completed[packing.id].outputs["shards"],
                "tokenizer": packed.outputs["tokenizer"],
                "yardstick": text.outputs["yardstick"] if text else ArtifactId(""),
            }
            name = _id(view, packing.phase, f"{arm}-{seed}")
            yield WorkItem(name, packing.phase, "train_proxy", params, inputs)


def _student_ids(
    completed: Mapping[str, WorkResult], round_number: int, phase: Phase, candidate: str = ""
) -> list[str]:
    first = f"r{round_number}/{phase}/{PROXIES}/"
    last = f"/{short(candidate)}" if candidate else ""
    found = (n for n in completed if n.startswith(first) and n.endswith(last))
    return sorted(name for name in found if "run" in completed[name].outputs)


def _runs(
    completed: Mapping[str, WorkResult], round_number: int, phase: Phase
) -> Iterator[ProxyRun]:
    for name in _student_ids(completed, round_number, phase):
        summary = completed[name].summary
        if summary.keys() >= ProxyRun.__dataclass_fields__.keys():
            yield ProxyRun(**{n: summary[n] for n in ProxyRun.__dataclass_fields__})  # pyright: ignore[reportArgumentType]
