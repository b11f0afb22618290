"""The items that collect a round's text, and what they found.

Owns what each source's item is told, and which collected text is trained on and which held out.
Doesn't know how a source is read (workers).
"""

from typing import TYPE_CHECKING

from blake3 import blake3

from jupiterd.cycle.phases.view import RoundView, item_id, result_of
from jupiterd.cycle.work import PREVIOUS, Phase, WorkItem
from jupiterd.ids import ArtifactId

if TYPE_CHECKING:
    from jupiterd.cycle.domain import Domain
    from jupiterd.cycle.plan import ModelShape


def collect(view: RoundView, domain: "Domain", _shape: "ModelShape") -> tuple[WorkItem, ...]:
    """Return an item for each source of the domain."""
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


def training_text(view: RoundView, domain: "Domain") -> dict[str, ArtifactId]:
    """Return the text of all sources but those of which nobody ever had any."""
    return {
        f"train.{number}": outputs["train"]
        for number in range(len(domain.data_sources))
        if "train" in (outputs := result_of(view, Phase.COLLECT, number).outputs)
    }


def held_out(view: RoundView, domain: "Domain") -> dict[str, ArtifactId]:
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


def holdout_version(view: RoundView, domain: "Domain") -> str:
    """Return 16 hex digits that change when the held-out text does, or how it is parted.

    Scores of two versions can't be compared.
    """
    rule = domain.holdout
    shares = [rule.salt, f"{rule.fraction:g}", f"{rule.dev:g}", f"{rule.vault:g}"]
    named = "\0".join([*shares, *sorted(held_out(view, domain).values())])
    return blake3(named.encode()).hexdigest(8)
