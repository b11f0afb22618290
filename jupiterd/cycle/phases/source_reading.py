"""The items that read a round's sources, and what came of each source.

Owns which parts a source is read in, what the item of a part is told, and the ids. Doesn't know
where a source is cut (`data.source_parts`), or how a part is read (workers).

    r1/collect/0    reads the first source
    r1/collect/1/2  reads the third part of a source that is read in parts

A cycle that has read a source whole reads it so in every round: what has changed since is asked of
what was found then.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jupiterd.cycle.base.work_item import PREVIOUS, Phase, WorkItem, WorkResult
from jupiterd.cycle.domain.source_parts import parts_of
from jupiterd.cycle.phases.view import RoundView, item_id
from jupiterd.ids import ArtifactId

if TYPE_CHECKING:
    from jupiterd.cycle.domain.data_sources import DataSource
    from jupiterd.cycle.domain.domain import Domain

READING: Final = "collect"
"""The task that reads a source."""


@dataclass(frozen=True)
class SourcePart:
    """What one item reads: a source, or a part of it."""

    item: str
    source: "DataSource"
    part: int = 0
    """Its number, from 0 on."""
    parts: int = 1
    """Of the source."""
    item_before: str = ""
    """What read the same in the round before."""

    @property
    def place(self) -> str:
        """Return which part it is, such as `2 of 3`; empty: the whole."""
        return f"{self.part + 1} of {self.parts}" if self.parts > 1 else ""


def source_parts(view: RoundView, domain: "Domain") -> tuple[SourcePart, ...]:
    """Return what is read in this round, source by source."""
    return tuple(
        part
        for number in range(len(domain.data_sources))
        for part in _parts_of_source(view, domain, number)
    )


def _parts_of_source(view: RoundView, domain: "Domain", number: int) -> list[SourcePart]:
    source = domain.data_sources[number]
    own, before = (item_id(n, Phase.COLLECT, number) for n in (view.round, view.round - 1))
    parts = (source,) if _is_read_whole(view, number) else parts_of(source)
    if len(parts) == 1:
        return [SourcePart(own, source, item_before=before)]
    return [
        SourcePart(f"{own}/{n}", part, n, len(parts), f"{before}/{n}")
        for n, part in enumerate(parts)
    ]


def _is_read_whole(view: RoundView, number: int) -> bool:
    """Say whether it was read by one item in this cycle, by a Jupiter that knew no parts."""
    items = (item_id(each, Phase.COLLECT, number) for each in range(1, view.round + 1))
    return is_split_while_read(view) or any(item in view.completed for item in items)


def reading(view: RoundView, domain: "Domain") -> tuple[WorkItem, ...]:
    """Return the items that read the sources."""
    old = {"holdout": domain.holdout.at_collection().model_dump(mode="json")}
    return tuple(
        WorkItem(
            part.item,
            Phase.COLLECT,
            READING,
            {
                "source": part.source.model_dump(mode="json"),
                "language": domain.language,
                "license_policy": domain.license_policy.model_dump(mode="json"),
                "fetched_at": view.started_at,
                "purged": sorted(view.purged),
                **({"part": part.part, "parts": part.parts} if part.parts > 1 else {}),
                **(old if is_split_while_read(view) else {}),
            },
            _collected_before(view, part),
        )
        for part in source_parts(view, domain)
    )


def _collected_before(view: RoundView, part: SourcePart) -> dict[str, ArtifactId]:
    """Return what the round before has of it: what hasn't changed isn't fetched again."""
    before = view.completed.get(part.item_before)
    outputs = {} if before is None else before.outputs
    names = ("documents", "train", "holdout", "state")
    has_state = "state" in outputs
    return {f"{PREVIOUS}{n}": outputs[n] for n in names if has_state and n in outputs}


def read_of(view: RoundView, domain: "Domain", number: int) -> list[WorkResult]:
    """Return what there is of a source's text, part by part; all of them were read."""
    parts = (view.completed[part.item] for part in _parts_of_source(view, domain, number))
    return [result for result in parts if "documents" in result.outputs]


def is_split_while_read(view: RoundView) -> bool:
    """Say whether the cycle began before text was parted after it was cleaned."""
    first = item_id(1, Phase.COLLECT, 0).removesuffix("0")
    return any(
        "train" in result.outputs and name.removeprefix(first).isdecimal()
        for name, result in view.completed.items()
        if name.startswith(first)
    )
