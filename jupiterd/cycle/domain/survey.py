"""What a domain's sources seem to hold, after a look of some seconds.

Owns the form of that answer. Doesn't know how anything is read (`workers.data.survey`), or what is
to be done with it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from jupiterd.cycle.holdout.verdict_check import Found
from jupiterd.cycle.holdout.verdict_forecast import TextCounts


@dataclass(frozen=True)
class SourceSurvey:
    """What one source seems to hold."""

    name: str
    kind: str
    found: int = 0
    """Files, pages or rows that there are; where `is_at_least`, as far as one looked."""
    read: int = 0
    """Of them, as many as there was time for."""
    kept: int = 0
    """Of those that were read, what rules and duplicates leave."""
    documents: int = 0
    """What would be kept of all."""
    bytes: int = 0
    """Of their text."""
    is_at_least: bool = False
    """There may be more of it than was found."""
    why_not: str = ""
    """Why nothing was counted; empty: it was."""
    is_empty: bool = False
    """It was looked at, and holds no text at all."""
    dropped: Mapping[str, int] = field(default_factory=dict[str, int])
    """Reason -> documents, of those that were read."""
    kinds: Mapping[str, int] = field(default_factory=dict[str, int])
    """Kind of document -> those kept, of those that were read."""
    slow: Sequence[str] = ()
    """The first of those that took too long, which are left out as `timed_out`."""

    @property
    def is_whole(self) -> bool:
        """Say whether all of it was read."""
        return not self.why_not and not self.is_at_least and self.read >= self.found

    @property
    def is_scaled(self) -> bool:
        """Say whether what would be kept is reckoned from a part that was read."""
        return self.read < self.found


@dataclass(frozen=True)
class Survey:
    """What all sources of a domain seem to hold."""

    sources: tuple[SourceSurvey, ...] = ()
    found: Found = field(default_factory=Found)
    """What would be held out of all of them together."""
    other_cases: tuple[Found, ...] = ()
    """The same where as few, or as many, are kept as may be of what wasn't read; of a whole look
    there are none."""
    language: str = ""
    """What most of the text is in, or `code:` and a programming language; empty: nobody asked."""
    reading_s: float = 0.0
    judging_s: float = 0.0
    other_language: str = ""
    """What most of the text is in, where it's dropped for not being in `language`; or empty."""

    @property
    def took_s(self) -> float:
        """Return how long the look took, without the start of its process."""
        return self.reading_s + self.judging_s

    @property
    def documents(self) -> int:
        """Return how many would be kept."""
        return sum(source.documents for source in self.sources)

    @property
    def bytes(self) -> int:
        """Return the size of all kept text."""
        return sum(source.bytes for source in self.sources)

    @property
    def counted(self) -> tuple[SourceSurvey, ...]:
        """Return the sources that something is known of."""
        return tuple(source for source in self.sources if not source.why_not)

    @property
    def dropped(self) -> Counter[str]:
        """Return how many of all that were read are dropped, by the reason."""
        return sum((Counter(source.dropped) for source in self.counted), Counter[str]())

    @property
    def is_whole(self) -> bool:
        """Say whether every source was read whole."""
        return all(source.is_whole for source in self.sources)

    @property
    def is_scaled(self) -> bool:
        """Say whether figures are reckoned from a part that was read."""
        return any(source.is_scaled for source in self.sources)

    @property
    def counts(self) -> TextCounts:
        """Return what the outlook on a verdict is computed of."""
        return TextCounts(self.documents, self.bytes, self.found, self.is_scaled, self.other_cases)

    def to_plain(self) -> dict[str, Any]:
        """Return it for programs."""
        return asdict(self)

    @classmethod
    def from_plain(cls, document: Mapping[str, Any]) -> Self:
        """Rebuild what `to_plain` gave."""
        return cls(
            sources=tuple(SourceSurvey(**source) for source in document["sources"]),
            found=Found(**document["found"]),
            other_cases=tuple(Found(**case) for case in document["other_cases"]),
            language=str(document["language"]),
            reading_s=float(document["reading_s"]),
            judging_s=float(document["judging_s"]),
            other_language=str(document.get("other_language", "")),
        )
