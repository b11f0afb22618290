"""What a round needs next: the table of phases and the items of each.

Owns the order of phases and what goes into every item. Doesn't know nodes, processes or the ledger:
it is shown what is done and says what is to be done. Whoever asks, whenever, gets the same answer,
so killing anything at any time and asking again leads to the same data.
"""

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from blake3 import blake3

from jupiterd.cycle.gate.decision import Decision
from jupiterd.cycle.generating import pieces_of
from jupiterd.cycle.generator import Generator
from jupiterd.cycle.mixing import share_cap
from jupiterd.cycle.split import DEV, GATE, VAULT
from jupiterd.cycle.uniting import knew_of, united, uniting_id
from jupiterd.cycle.work import PREVIOUS, Phase, WorkItem, WorkResult
from jupiterd.errors import Bug
from jupiterd.ids import ArtifactId, CycleId, short

if TYPE_CHECKING:
    from jupiterd.cycle.domain import Domain
    from jupiterd.cycle.plan import ModelShape

EVALUATION_PIECES = 2
"""Evaluation is cut into this many items, so that two nodes share it; ids must never change."""

COMPLETIONS = 8
"""So many texts a candidate writes before it is compared, to see whether it works at all."""

VAULT_EVERY = 5
"""The vault is shown for every fifth candidate that would be promoted."""


@dataclass(frozen=True)
class RoundView:
    """What is known of a round and of those before it."""

    cycle: CycleId
    round: int
    seed: int
    started_at: str
    completed: Mapping[str, WorkResult]
    """Item id -> result, over all rounds of the cycle: ids carry the round."""
    trained: ArtifactId | None
    """The round's final checkpoint, once training is done."""
    generator: str
    """Artifact id of the promoted model in force, or empty."""
    looks: int
    """How often a candidate has been shown the holdout before this round."""
    student: str = ""
    """Artifact id of the last student that was shown to be better than the one before; or empty."""
    purged: frozenset[str] = frozenset()
    """Sources of which nothing is used any more, nor anything that was made from it."""
    of_others: Generator | None = None
    """The generator that people named, or None."""

    @property
    def writer(self) -> Generator | None:
        """The generator in force, or None.

        A student was shown to be better than the student before it, never than what others made:
        that one goes on generating until a gate compares the two.
        """
        if self.of_others is not None or not self.generator:
            return self.of_others
        return Generator(short(self.generator), self.generator)


@dataclass(frozen=True)
class RunItems:
    """Do these items; they don't depend on each other."""

    phase: Phase
    items: tuple[WorkItem, ...]
    total: int
    """Items of the phase, those done included."""


@dataclass(frozen=True)
class TrainRound:
    """Train on the round's manifest."""

    tokenizer: ArtifactId
    shards: ArtifactId
    held_out: tuple[ArtifactId, ...] = ()
    """Text for the loss at the end of each pass; nothing is decided by that."""


@dataclass(frozen=True)
class CloseRound:
    """Record the verdict and the end of the round."""

    verdict: WorkResult


Step = RunItems | TrainRound | CloseRound


def item_id(round_number: int, phase: Phase, number: int, model: str = "") -> str:
    """Return the id of the phase's n-th item; what is said of a model carries the model's id."""
    name = f"r{round_number}/{phase}/{number}"
    return f"{name}/{short(model)}" if model else name


def next_step(view: RoundView, domain: "Domain", shape: "ModelShape") -> tuple[Step, str]:
    """Return what the round needs next, with the reason.

    A round that is packed has its data, also where an earlier one is trained again and another
    generator came of it: what it was made of may be gone.
    """
    is_packed = item_id(view.round, Phase.PACK, 0) in view.completed
    for phase, items_of in _ITEMS.items():
        if is_packed and phase in _OF_DATA:
            continue
        if phase is Phase.EVALUATE and view.trained is None:
            return trained_in(view.round, view.completed), "the round's sequences are packed"
        items = items_of(view, domain, shape)
        undone = tuple(item for item in items if item.id not in view.completed)
        if undone:
            step = RunItems(phase, undone, len(items))
            return step, f"{len(undone)} of {len(items)} items are open"
    judged = verdict_item(view.round, view.trained or "", view.completed)
    return CloseRound(view.completed[judged]), "the gate has decided"


_FIRST_COLLECTED = item_id(1, Phase.COLLECT, 0).removesuffix("0")


def skip_reason(view_round: int, generator: str, phase: Phase) -> str:
    """Say why a phase has nothing to do in this round; empty when it has."""
    if phase is not Phase.GENERATE or generator:
        return ""
    if view_round == 1:
        return "round 1 trains on real data alone"
    return "no generator was promoted, so this round uses real data alone"


def _result(view: RoundView, phase: Phase, number: int = 0, round_number: int = 0) -> WorkResult:
    return view.completed[item_id(round_number or view.round, phase, number)]


def trained_in(round_number: int, completed: Mapping[str, WorkResult]) -> TrainRound:
    """Return what a round that is packed trains on.

    completed: item id -> result, over all rounds
    """
    packed = completed[item_id(round_number, Phase.PACK, 0)]
    names = sorted(name for name in completed if name.startswith(_FIRST_COLLECTED))
    collected = (completed[name].outputs for name in names)
    held_out = tuple(outputs["holdout"] for outputs in collected if "holdout" in outputs)
    return TrainRound(_tokenizer(completed), packed.outputs["shards"], held_out)


def _tokenizer(completed: Mapping[str, WorkResult]) -> ArtifactId:
    """Return the first round's tokenizer: it never changes, so that students stay comparable."""
    return completed[item_id(1, Phase.PACK, 0)].outputs["tokenizer"]


def _collect(view: RoundView, domain: "Domain", _shape: "ModelShape") -> tuple[WorkItem, ...]:
    return tuple(
        WorkItem(
            item_id(view.round, Phase.COLLECT, number),
            Phase.COLLECT,
            "collect",
            {
                "source": source.model_dump(mode="json"),
                "holdout": domain.holdout.model_dump(mode="json"),
                "language": domain.language,
                "license_policy": domain.license_policy.model_dump(mode="json"),
                "fetched_at": view.started_at,
                "purged": sorted(view.purged),
            },
            _collected_before(view, number),
        )
        for number, source in enumerate(domain.data_sources)
    )


def _collected_before(view: RoundView, number: int) -> dict[str, ArtifactId]:
    """Return what the round before has of a source: what hasn't changed isn't fetched again."""
    before = view.completed.get(item_id(view.round - 1, Phase.COLLECT, number))
    outputs = {} if before is None else before.outputs
    names = ("train", "holdout", "state")
    return {f"{PREVIOUS}{name}": outputs[name] for name in names if "state" in outputs}


def _training_text(view: RoundView, domain: "Domain") -> dict[str, ArtifactId]:
    """Return the text of all sources but those of which nobody ever had any."""
    return {
        f"train.{number}": outputs["train"]
        for number in range(len(domain.data_sources))
        if "train" in (outputs := _result(view, Phase.COLLECT, number).outputs)
    }


def _holdout(view: RoundView, domain: "Domain") -> dict[str, ArtifactId]:
    """Return what was held out of each source in the first round that had text of it.

    Scores of all rounds are of the same text; it grows only where a source answers at last.
    """
    found = {
        f"holdout.{number}": _first_held_out(view, number)
        for number in range(len(domain.data_sources))
    }
    return {name: artifact for name, artifact in found.items() if artifact is not None}


def _first_held_out(view: RoundView, number: int) -> ArtifactId | None:
    items = (item_id(each, Phase.COLLECT, number) for each in range(1, view.round + 1))
    collected = (view.completed[item].outputs for item in items if item in view.completed)
    return next((outputs["holdout"] for outputs in collected if "holdout" in outputs), None)


def verdict_item(round_number: int, candidate: str, completed: Container[str] = frozenset()) -> str:
    """Return the id of the item whose verdict counts: the second, where the vault was shown."""
    with_vault = item_id(round_number, Phase.GATE, 1, candidate)
    return (
        with_vault if with_vault in completed else item_id(round_number, Phase.GATE, 0, candidate)
    )


def _is_shown_the_vault(view: RoundView, domain: "Domain") -> bool:
    """Say whether what this candidate saves is looked at in the vault, too.

    That is so for every fifth candidate that would be promoted: seldom enough to keep the vault
    secret, and often enough to notice that the gate's text was over-fitted.
    """
    if not domain.holdout.vault or not _was_won(view, view.round, view.trained or ""):
        return False
    before = sum(_was_won(view, number) for number in range(1, view.round))
    return (before + 1) % VAULT_EVERY == 0


def _was_won(view: RoundView, round_number: int, candidate: str = "") -> bool:
    """Say whether a round's candidate, or any where none is named, passed the gate."""
    begin = item_id(round_number, Phase.GATE, 0, candidate)
    return any(
        result.summary.get("verdict") == Decision.PROMOTE
        for name, result in view.completed.items()
        if name == begin or (not candidate and name.startswith(f"{begin}/"))
    )


def _holdout_version(view: RoundView, domain: "Domain") -> str:
    """Return 16 hex digits that change when the held-out text does, or how it is parted.

    Scores of two versions can't be compared.
    """
    rule = domain.holdout
    shares = [rule.salt, f"{rule.fraction:g}", f"{rule.dev:g}", f"{rule.vault:g}"]
    named = "\0".join([*shares, *sorted(_holdout(view, domain).values())])
    return blake3(named.encode()).hexdigest(8)


def _generate(view: RoundView, domain: "Domain", _shape: "ModelShape") -> tuple[WorkItem, ...]:
    writer = view.writer
    if writer is None:
        return ()
    generation = domain.generation
    common = {
        "generator": writer.id,
        "engine": generation.engine,
        "language": domain.language,
        "fetched_at": view.started_at,
        "purged": sorted(view.purged),
        "temperature": generation.temperature,
        "top_p": generation.top_p,
        **({"server": writer.to_plain()} if writer.url else {}),
    }
    model = {"model": ArtifactId(writer.artifact)} if writer.artifact else {}
    order = f"{view.seed}/{view.round}"
    return tuple(
        WorkItem(
            item_id(view.round, Phase.GENERATE, number),
            Phase.GENERATE,
            "generate",
            {
                **common,
                **piece.params(number, order),
                "max_tokens": generation.max_tokens_of(piece.template),
            },
            {**model, **_training_text(view, domain)},
        )
        for number, piece in enumerate(pieces_of(generation.templates))
    )


def _synthetic(view: RoundView) -> list[dict[str, ArtifactId]]:
    """Return what each round so far has generated: it accumulates, and is filtered anew."""
    found = [_generated_in(view, number) for number in range(1, view.round + 1)]
    return [
        {f"samples.{number}" if number else "samples": each for number, each in enumerate(batches)}
        for batches in found
        if batches
    ]


def _generated_in(view: RoundView, round_number: int) -> list[ArtifactId]:
    """Return the batches of a round in the order of their items, but those that failed."""
    first = item_id(round_number, Phase.GENERATE, 0).removesuffix("0")
    numbers = sorted(
        int(name.removeprefix(first)) for name in view.completed if name.startswith(first)
    )
    outputs = (view.completed[f"{first}{number}"].outputs for number in numbers)
    return [each["samples"] for each in outputs if "samples" in each]


def _filter(view: RoundView, domain: "Domain", _shape: "ModelShape") -> tuple[WorkItem, ...]:
    """Return what cleans each batch by itself, and then also what unites them, which is item 0."""
    cleaning = _clean(view, domain)
    if any(item.id not in view.completed for item in cleaning):
        return cleaning
    return (*cleaning, _unite(view, domain, cleaning))


def _clean(view: RoundView, domain: "Domain") -> tuple[WorkItem, ...]:
    params = {
        "language": domain.language,
        "license_policy": domain.license_policy.model_dump(mode="json"),
    }
    real = _training_text(view, domain).items()
    batches = {1 + int(name.partition(".")[2]): {"samples": each} for name, each in real}
    # Numbers are the same whichever sources couldn't be had.
    batches |= dict(enumerate(_synthetic(view), 1 + len(domain.data_sources)))
    return tuple(
        WorkItem(item_id(view.round, Phase.FILTER, number), Phase.FILTER, "clean", params, batch)
        for number, batch in batches.items()
    )


def _unite(view: RoundView, domain: "Domain", cleaning: tuple[WorkItem, ...]) -> WorkItem:
    inputs = _holdout(view, domain)
    for number, item in enumerate(cleaning):
        outputs = view.completed[item.id].outputs
        inputs |= {f"{name}.{number}": outputs[name] for name in ("clean", "dropped")}
    params: dict[str, Any] = {"language": domain.language, "purged": sorted(view.purged)}
    if domain.filters.quality is not None:
        params["quality"] = domain.filters.quality.model_dump(mode="json")
    return WorkItem(_uniting(view), Phase.FILTER, "unite", params, inputs)


def _uniting(view: RoundView) -> str:
    """Return the id of the uniting that counts; a purge asks for another, until it is packed."""
    done = {name: result.counts for name, result in view.completed.items()}
    last = united(view.round, done)
    is_packed = item_id(view.round, Phase.PACK, 0) in done
    if last and (is_packed or knew_of(done[last], view.purged)):
        return last
    return uniting_id(view.round, view.purged)


def _pack(view: RoundView, domain: "Domain", shape: "ModelShape") -> tuple[WorkItem, ...]:
    inputs = {"kept": view.completed[_uniting(view)].outputs["kept"]}
    if view.round > 1:
        inputs["tokenizer"] = _tokenizer(view.completed)
    params = {
        "vocab_size": shape.vocab_size,
        "seq_len": shape.seq_len,
        "synthetic_share": share_cap(
            domain.mix_ratio.synthetic_share, is_own=view.of_others is None
        ),
        "seed": view.seed,
        "purged": sorted(view.purged),
    }
    return (WorkItem(item_id(view.round, Phase.PACK, 0), Phase.PACK, "pack", params, inputs),)


def _evaluate(view: RoundView, domain: "Domain", _shape: "ModelShape") -> tuple[WorkItem, ...]:
    """Return what is scored: the gate's text, and once a fifth one has won there, the vault's."""
    if view.trained is None:
        raise Bug("a round is evaluated before it is trained")
    pieces = range(EVALUATION_PIECES)
    judged = tuple(_scoring(view, domain, piece, piece, [GATE]) for piece in pieces)
    if not _is_shown_the_vault(view, domain):
        return judged
    parts = [DEV, VAULT] if domain.holdout.dev else [VAULT]
    return (*judged, _scoring(view, domain, EVALUATION_PIECES, 0, parts, pieces=1))


def _scoring(
    view: RoundView,
    domain: "Domain",
    number: int,
    piece: int,
    parts: list[str],
    pieces: int = EVALUATION_PIECES,
) -> WorkItem:
    params = {
        "piece": piece,
        "pieces": pieces,
        "purged": sorted(view.purged),
        "parts": parts,
        "language": domain.language if GATE in parts else "",
        "completions": COMPLETIONS if GATE in parts and piece == 0 else 0,
        "seed": view.seed * 1000 + view.round,
        **domain.evaluation.model_dump(mode="json"),
    }
    inputs = {
        "model": ArtifactId(view.trained or ""),
        "kept": view.completed[_uniting(view)].outputs["kept"],
        **_holdout(view, domain),
        **_contestants(view),
    }
    name = item_id(view.round, Phase.EVALUATE, number, view.trained or "")
    return WorkItem(name, Phase.EVALUATE, "evaluate", params, inputs)


def _contestants(view: RoundView) -> dict[str, ArtifactId]:
    """Return whom the candidate is compared with; the byte model where somebody is missing."""
    found = {"incumbent": view.student, "generator": _generator_in_force(view)}
    return {name: ArtifactId(model) for name, model in found.items() if model}


def _generator_in_force(view: RoundView) -> str:
    """Return the model that writes; where a server does, nobody can score that: our last winner."""
    writer = view.writer
    return view.generator if writer is None or not writer.artifact else writer.artifact


def _gate(view: RoundView, domain: "Domain", _shape: "ModelShape") -> tuple[WorkItem, ...]:
    if not _is_shown_the_vault(view, domain):
        return (_judging(view, domain, 0, {}),)
    seen = item_id(view.round, Phase.EVALUATE, EVALUATION_PIECES, view.trained or "")
    vault = {"vault.0": view.completed[seen].outputs["scores"]}
    return (_judging(view, domain, 0, {}), _judging(view, domain, 1, vault))


def _judging(
    view: RoundView, domain: "Domain", number: int, vault: dict[str, ArtifactId]
) -> WorkItem:
    scores = {
        f"scores.{piece}": view.completed[
            item_id(view.round, Phase.EVALUATE, piece, view.trained or "")
        ].outputs["scores"]
        for piece in range(EVALUATION_PIECES)
    } | vault
    params = {
        "gate": domain.gate.model_dump(mode="json"),
        "holdout": domain.holdout.model_dump(mode="json"),
        "holdout_version": _holdout_version(view, domain),
        "parts": [GATE],
        "look": view.looks + 1,
        "cycle": view.cycle,
        "seed": view.seed,
        "candidate": view.trained,
        "incumbent": view.student,
        "generator": _generator_in_force(view),
        "round": view.round,
        "scores": scores,
    }
    name = item_id(view.round, Phase.GATE, number, view.trained or "")
    return WorkItem(name, Phase.GATE, "gate", params, scores)


_ITEMS: Mapping[Phase, "Callable[[RoundView, Domain, ModelShape], tuple[WorkItem, ...]]"] = {
    Phase.COLLECT: _collect,
    Phase.GENERATE: _generate,
    Phase.FILTER: _filter,
    Phase.PACK: _pack,
    Phase.EVALUATE: _evaluate,
    Phase.GATE: _gate,
}
"""The items of every phase but training, which is a gang's work; in the order of a round."""

_OF_DATA = frozenset({Phase.COLLECT, Phase.GENERATE, Phase.FILTER, Phase.PACK})
