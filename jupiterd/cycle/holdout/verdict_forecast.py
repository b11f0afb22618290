"""Whether text can be judged, how well, and what would help: said before anything is spent.

Owns that answer, from what would be held out of the text. Doesn't know how that was found out:
`domain lint`, `cycle plan` and `cycle start` read for some seconds.
"""

import math
from dataclasses import dataclass
from typing import Final

from jupiterd.cycle.holdout.holdout_rules import HoldoutRules
from jupiterd.cycle.holdout.paired_spread import FIRST, LATER, Comparison
from jupiterd.cycle.holdout.verdict_check import BYTES_OF_TOKEN, WHAT_HELPS, Found
from jupiterd.formats import counted

SEES_WELL_BPB: Final = 0.05
"""A second round usually brings a gain of 0.08 or more, and a verdict should see that."""

HARDLY_MORE: Final = 1.25
"""Figures of which the greatest is so many times the least are told as one."""

_MORE: Final = "with more documents, from more folders or sites, a smaller gain would show"


@dataclass(frozen=True)
class TextCounts:
    """What a domain's sources come to, or seem to."""

    documents: int
    """Without copies of each other."""
    bytes: int
    found: Found
    """What would be held out of them."""
    is_scaled: bool = False
    """These figures are reckoned from a part that was read."""
    other_cases: tuple[Found, ...] = ()
    """What would be held out if that part isn't quite like the rest."""

    @property
    def tokens(self) -> int:
        """Return about how many tokens that is."""
        return self.bytes // BYTES_OF_TOKEN

    @property
    def cases(self) -> tuple[Found, ...]:
        """Return what may be held out, the likely case first."""
        return (self.found, *self.other_cases)


@dataclass(frozen=True)
class VerdictForecast:
    """Whether a verdict is possible, and how well it would see."""

    can_be_judged: bool
    may_be_judged: bool
    """It isn't known that it can't be: a part was read, and the rest may be better."""
    gate_documents: int
    gate_clusters: int
    dev_documents: int
    held_out_share: float
    """Of all documents."""
    first_bpb: float
    """The smallest true gain that round 1 shows with a chance of 80 %, over counting or the model
    that was brought, where documents differ as they usually do; infinite where there is no verdict.
    """
    later_bpb: float
    """The same of the gain over the student before, in the round after it."""
    answer: str
    """Can it be judged, and how well? One sentence."""
    help: str
    """What would help; empty: nothing has to."""


def verdict_forecast(
    counts: TextCounts, rules: HoldoutRules, of_first: Comparison = FIRST
) -> VerdictForecast:
    """Return whether this text can be judged, how well, and what would help.

    of_first: what round 1 is compared with
    """
    found = counts.found
    can_be_judged = _can_be_judged(found, rules)
    first, later = (
        found.detectable_bpb(rules, comparison) if can_be_judged else math.inf
        for comparison in (of_first, LATER)
    )
    sees_badly = _MORE if later > SEES_WELL_BPB else ""
    return VerdictForecast(
        can_be_judged=can_be_judged,
        may_be_judged=any(_can_be_judged(case, rules) for case in counts.cases),
        gate_documents=found.gate_documents,
        gate_clusters=found.gate_clusters,
        dev_documents=found.dev_documents,
        held_out_share=found.held_out / counts.documents if can_be_judged else 0.0,
        first_bpb=first,
        later_bpb=later,
        answer=_how_well(counts, rules, of_first) if can_be_judged else _why_not(counts, rules),
        help=sees_badly if can_be_judged else WHAT_HELPS,
    )


def _can_be_judged(found: Found, rules: HoldoutRules) -> bool:
    return found.effective_clusters >= 2 and found.is_enough(rules)


def _how_well(counts: TextCounts, rules: HoldoutRules, of_first: Comparison) -> str:
    about, found = _about(counts), counts.found
    is_sure = all(_can_be_judged(case, rules) for case in counts.cases)
    return (
        f"{'yes' if is_sure else 'probably'}: {about}{found.held_out:,} of "
        f"{about}{counted(counts.documents, 'document')} are held out, "
        f"{about}{found.gate_documents:,} of them for the gate; "
        f"{found.promise(rules, of_first)}{_range(counts, rules, of_first)}"
    )


def _range(counts: TextCounts, rules: HoldoutRules, of_first: Comparison) -> str:
    """Return between what the figures lie; empty: that is hardly a difference."""
    able = [case for case in counts.cases if _can_be_judged(case, rules)]
    least, *_, most = sorted(case.gate_documents for case in able * 2)
    best, *_, worst = sorted(case.detectable_bpb(rules, of_first) for case in able * 2)
    is_sure = len(able) == len(counts.cases)
    if is_sure and most <= HARDLY_MORE * least and worst <= HARDLY_MORE * best:
        return ""
    none = "" if is_sure else ", or too few for a verdict"
    return (
        f"; only a part was read, so it may be {least:,} to {most:,} documents for the gate and a "
        f"gain from {best:.2g} to {worst:.2g}{none}"
    )


def _why_not(counts: TextCounts, rules: HoldoutRules) -> str:
    available = f"{_about(counts)}{counted(counts.documents, 'document')}"
    may_be = any(_can_be_judged(case, rules) for case in counts.cases)
    enough = "; only a part was read, so it may be enough" if may_be else ""
    return f"{available}, about {counts.tokens:,} tokens; {counts.found.needed(rules)}{enough}"


def _about(counts: TextCounts) -> str:
    return "about " if counts.is_scaled else ""
