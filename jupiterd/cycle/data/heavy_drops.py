"""A phase that let less than half of its text through, and what people are told of it.

Owns when that is so, and the words. Pure. Doesn't know how anything was counted (`phase_flow`), or
where it is shown.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.data.phase_flow import Flow
from jupiterd.cycle.data.reason_words import reason_words

NAMED_REASONS: Final = 2

_WORDS: Mapping[Phase, tuple[str, str]] = {
    Phase.COLLECT: ("collect left out", "documents"),
    Phase.GENERATE: ("generate refused", "answers"),
    Phase.FILTER: ("filter dropped", "texts"),
}
"""Phase -> what it did, and with what; of other phases more goes in than comes out by design."""


@dataclass(frozen=True)
class HeavyDrop:
    """What a phase of a round has dropped, where that is more than half."""

    round: int
    phase: Phase
    dropped: int
    into: int
    reasons: tuple[tuple[str, int], ...]
    """The commonest, each with how many."""

    @property
    def summary(self) -> str:
        """What people are told in a line."""
        did, what = _WORDS[self.phase]
        share = 100 * self.dropped // self.into
        why = ", ".join(f"{reason_words(reason)} {count:,}" for reason, count in self.reasons)
        counted = f"{did} {self.dropped:,} of {self.into:,} {what} ({share} %)"
        return f"{counted}: {why}" if why else counted

    def to_plain(self) -> dict[str, Any]:
        """Return it as documents carry it."""
        return {
            "round": self.round,
            "phase": str(self.phase),
            "dropped": self.dropped,
            "in": self.into,
            "reasons": dict(self.reasons),
            "told": self.summary,
        }


def heavy_drop(
    round_number: int, phase: Phase, flow: Flow, *, has_failed: bool = False
) -> HeavyDrop | None:
    """Return what people are told of a phase; None where it let half of its text through, or more.

    Args:
        round_number: of the phase.
        phase: any.
        flow: what went in and came out, as far as it is known by now.
        has_failed: nothing more will come out of it.
    """
    out = 0 if has_failed and flow.out is None else flow.out
    if phase not in _WORDS or not flow.into or out is None:
        return None
    dropped = flow.into - out
    if 2 * dropped <= flow.into:
        return None
    reasons = tuple(islice(flow.dropped.items(), NAMED_REASONS))
    return HeavyDrop(round_number, phase, dropped, flow.into, reasons)


def judged_phases() -> Iterator[Phase]:
    """Yield the phases that are looked at, in their order."""
    yield from _WORDS
