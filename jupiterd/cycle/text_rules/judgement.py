"""What rules say of one text: kept with what was measured, or dropped with the limit it missed.

Owns that form. Doesn't know any rule.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from jupiterd.cycle.base.drop_reason import DropReason


@dataclass(frozen=True)
class Miss:
    """A limit that a text is on the wrong side of."""

    reason: DropReason
    measure: str = ""
    """What was measured; empty: nothing was counted."""
    value: float = 0.0
    limit: float = 0.0
    """The least or the most that it could have been."""


@dataclass(frozen=True)
class Judgement:
    """What the rules say of one text."""

    reason: DropReason | None
    """Why it is dropped; None keeps it."""
    scores: Mapping[str, float] = field(default_factory=dict[str, float])
    """What was measured of a text that is kept."""
    measure: str = ""
    """What was measured of a text that is dropped, such as `words`; empty: nothing was counted."""
    value: float = 0.0
    limit: float = 0.0
    """The least or the most that `measure` could have been, whichever it missed."""
    prose: str = ""
    """Its sentences without marks and code, by which its language is told; empty: it has none."""

    @classmethod
    def of_miss(cls, miss: Miss) -> "Judgement":
        """Return the judgement that drops a text for this."""
        return cls(miss.reason, {}, miss.measure, miss.value, miss.limit)


def above(reason: DropReason, measure: str, value: float, limit: float) -> Iterator[Miss]:
    """Yield the miss where the value is above the most that it may be."""
    if value > limit:
        yield Miss(reason, measure, value, limit)


def below(reason: DropReason, measure: str, value: float, limit: float) -> Iterator[Miss]:
    """Yield the miss where the value is below the least that it may be."""
    if value < limit:
        yield Miss(reason, measure, value, limit)


def first_miss(misses: Iterable[Miss], off: frozenset[DropReason]) -> Miss | None:
    """Return the first miss of a rule that is in force; later ones aren't even looked for."""
    return next((miss for miss in misses if miss.reason not in off), None)
