"""The items that collect a round's text: read it, clean it, and part it.

Owns what each item is told once the text is read, and which text is trained on and which held out.
Doesn't know what reads a source (`source_reading`), which texts are clean (workers), or what is
held out of them (`data.holdout_plan`).

    r1/collect/0          reads the first source
    r1/collect/clean/0    cleans what was read of it, by the rules that generated text meets, too
    r1/collect/clean/1-0  the same for a piece of a source that has much text, so that several
                          machines share it
    r1/collect/split      parts all of it, once every source is clean

A cycle that began before text was parted here had it parted as each document was read; it goes on
so, for what is held out must stay held out.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Final

from blake3 import blake3

from jupiterd.cycle.base.work_item import Phase, WorkItem, WorkResult
from jupiterd.cycle.phases.comparison import comparison_of
from jupiterd.cycle.phases.source_reading import is_split_while_read, read_of, reading
from jupiterd.cycle.phases.view import RoundView, item_id, result_of
from jupiterd.ids import ArtifactId

if TYPE_CHECKING:
    from jupiterd.cycle.domain.domain import Domain
    from jupiterd.cycle.training.plan import ModelShape

PIECE_BYTES: Final = 64 << 20
"""Of a source that has more text several items clean a part each: so much takes about a minute."""

_DROPPED: Final = "dropped."
"""So the counts of what cleaning left out begin, before the reason."""


def collect(view: RoundView, domain: "Domain", _shape: "ModelShape") -> tuple[WorkItem, ...]:
    """Return what reads the sources of the domain, then also what cleans and what parts it."""
    read = reading(view, domain)
    if is_split_while_read(view) or _is_open(view, read):
        return read
    cleaning = _cleaning(view, domain)
    if _is_open(view, cleaning):
        return (*read, *cleaning)
    return (*read, *cleaning, _splitting(view, domain, cleaning))


def split_id(round_number: int) -> str:
    """Return the id of the item that parts a round's text."""
    return f"r{round_number}/{Phase.COLLECT}/split"


def _is_open(view: RoundView, items: tuple[WorkItem, ...]) -> bool:
    return any(item.id not in view.completed for item in items)


def _cleaning(view: RoundView, domain: "Domain") -> tuple[WorkItem, ...]:
    """Return what cleans the text of each source but those of which nobody ever had any."""
    return tuple(
        item
        for number in range(len(domain.data_sources))
        for item in _cleaning_of(view, domain, number)
    )


def _cleaning_of(view: RoundView, domain: "Domain", number: int) -> Iterator[WorkItem]:
    """Yield what cleans a source: as many items as its text has use for."""
    read = read_of(view, domain, number)
    if not read:
        return
    documents = [result.outputs["documents"] for result in read]
    inputs = {f"samples.{n}" if n else "samples": each for n, each in enumerate(documents)}
    size = sum(result.counts.get("bytes", 0.0) for result in read)
    pieces = max(1, math.ceil(size / PIECE_BYTES))
    name = f"r{view.round}/{Phase.COLLECT}/clean/{number}"
    for piece in range(pieces):
        own = name if pieces == 1 else f"{name}-{piece}"
        item = cleaning(domain, own, Phase.COLLECT, inputs)
        part = {"piece": piece, "pieces": pieces} if pieces > 1 else {}
        yield replace(item, params={**item.params, **part})


def cleaning(domain: "Domain", item: str, phase: Phase, samples: dict[str, ArtifactId]) -> WorkItem:
    """Return an item that cleans one batch, real or generated, by itself."""
    params = {
        "language": domain.language,
        "license_policy": domain.license_policy.model_dump(mode="json"),
        "rules_off": sorted(domain.filters.off),
    }
    return WorkItem(item, phase, "clean", params, samples)


def _splitting(view: RoundView, domain: "Domain", cleaning: tuple[WorkItem, ...]) -> WorkItem:
    inputs: dict[str, ArtifactId] = {}
    dropped: Counter[str] = Counter()
    for number, item in enumerate(cleaning):
        done = view.completed[item.id]
        inputs |= {f"{name}.{number}": done.outputs[name] for name in ("clean", "dropped")}
        dropped.update({n: int(c) for n, c in done.counts.items() if n.startswith(_DROPPED)})
    before = view.completed.get(split_id(view.round - 1))
    if before is not None:
        inputs |= {f"{name}_before": before.outputs[name] for name in ("holdout", "plan")}
    params = {
        "holdout": asdict(domain.holdout_rules()),
        "language": domain.language,
        "left_out": {name.removeprefix(_DROPPED): count for name, count in dropped.items()},
        "needs_verdict": not view.without_verdict,
        "comparison": comparison_of(view).to_plain(),
    }
    return WorkItem(split_id(view.round), Phase.COLLECT, "hold_out", params, inputs)


def training_text(view: RoundView, domain: "Domain") -> dict[str, ArtifactId]:
    """Return the text that may be trained on: clean, and of nothing that is held out.

    Of an older cycle it is all that was read and isn't held out, of each source by itself.
    """
    if not is_split_while_read(view):
        return {"train.0": view.completed[split_id(view.round)].outputs["train"]}
    return {
        f"train.{number}": outputs["train"]
        for number in range(len(domain.data_sources))
        if "train" in (outputs := result_of(view, Phase.COLLECT, number).outputs)
    }


def held_out(view: RoundView, domain: "Domain") -> dict[str, ArtifactId]:
    """Return what was held out of each source in the first round that had text of it.

    Scores of all rounds are of the same text; it grows only where a source answers at last.
    """
    if not is_split_while_read(view):
        split = _last_split(view)
        return {} if split is None else {"holdout.0": split.outputs["holdout"]}
    found = {
        f"holdout.{number}": _first_held_out(view, number)
        for number in range(len(domain.data_sources))
    }
    return {name: artifact for name, artifact in found.items() if artifact is not None}


def _first_held_out(view: RoundView, number: int) -> ArtifactId | None:
    items = (item_id(each, Phase.COLLECT, number) for each in range(1, view.round + 1))
    collected = (view.completed[item].outputs for item in items if item in view.completed)
    return next((outputs["holdout"] for outputs in collected if "holdout" in outputs), None)


def has_vault(view: RoundView, domain: "Domain") -> bool:
    """Say whether some text is held out that nobody looks at."""
    if is_split_while_read(view):
        return bool(domain.holdout.at_collection().vault)
    split = _last_split(view)
    is_held = split is not None and bool(split.counts.get("vault_documents"))
    return is_held and domain.holdout.vault != 0


def _last_split(view: RoundView) -> WorkResult | None:
    """Return what came of parting the text, in this round or the last one that did."""
    rounds = (split_id(number) for number in range(view.round, 0, -1))
    return next((view.completed[item] for item in rounds if item in view.completed), None)


def holdout_version(view: RoundView, domain: "Domain") -> str:
    """Return 16 hex digits that change when the held-out text does, or how it is parted.

    Scores of two versions can't be compared.
    """
    shares = [domain.holdout.salt]
    if is_split_while_read(view):
        rule = domain.holdout.at_collection()
        shares += [f"{share:g}" for share in (rule.fraction, rule.dev, rule.vault)]
    named = "\0".join([*shares, *sorted(held_out(view, domain).values())])
    return blake3(named.encode()).hexdigest(8)
