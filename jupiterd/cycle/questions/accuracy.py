"""How many questions a model answers rightly, how sure that is, and two models on the same ones.

Owns these figures. Pure. No verdict is made of them: people's questions are few, and are looked at
as often as people like.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

Z: Final = 1.959964
"""Of a normal distribution: 95 % are within so many standard deviations."""


@dataclass(frozen=True)
class Interval:
    """What holds with 95 % certainty."""

    low: float
    high: float


@dataclass(frozen=True)
class Accuracy:
    """How many of some questions are answered rightly."""

    right: int
    questions: int

    @property
    def share(self) -> float:
        """Return the part that is right; 0 of no questions."""
        return self.right / self.questions if self.questions else 0.0

    @property
    def interval(self) -> Interval:
        """Return where the share of all such questions lies (Wilson, JASA 22, 1927)."""
        count = self.questions
        if not count:
            return Interval(0.0, 1.0)
        middle = (self.share + Z * Z / (2 * count)) / (1 + Z * Z / count)
        spread = math.sqrt(self.share * (1 - self.share) / count + Z * Z / (4 * count * count))
        half = Z * spread / (1 + Z * Z / count)
        return Interval(max(0.0, middle - half), min(1.0, middle + half))


@dataclass(frozen=True)
class PairedAccuracy:
    """Two models on the same questions."""

    questions: int
    only_first: int
    """Answered rightly by the first model alone."""
    only_second: int

    @property
    def difference(self) -> float:
        """Return by how much more the first one answers, as a part of all questions."""
        return (self.only_first - self.only_second) / self.questions if self.questions else 0.0

    @property
    def interval(self) -> Interval:
        """Return where the true difference lies (Bonett and Price, JEBS 37, 2012)."""
        count = self.questions + 2
        first, second = (self.only_first + 1) / count, (self.only_second + 1) / count
        middle = first - second
        half = Z * math.sqrt(max(0.0, first + second - middle * middle) / count)
        return Interval(max(-1.0, middle - half), min(1.0, middle + half))


def accuracy(right: Iterable[bool]) -> Accuracy:
    """Return how many are right."""
    found = list(right)
    return Accuracy(sum(found), len(found))


def by_topic(topics: Sequence[str], right: Sequence[bool]) -> Mapping[str, Accuracy]:
    """Return the accuracy of each topic, sorted; those of none are left out."""
    pairs = list(zip(topics, right, strict=True))
    return {
        topic: accuracy(is_right for each, is_right in pairs if each == topic)
        for topic in sorted(set(topics) - {""})
    }


def compared(first: Sequence[bool], second: Sequence[bool]) -> PairedAccuracy:
    """Return how two models differ on the same questions, in the same order."""
    pairs = list(zip(first, second, strict=True))
    return PairedAccuracy(
        len(pairs),
        sum(ours and not theirs for ours, theirs in pairs),
        sum(theirs and not ours for ours, theirs in pairs),
    )
