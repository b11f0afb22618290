"""Whether the gate's text was over-fitted: the same improvement on text that nobody ever looked at.

Owns the alarm. Doesn't know when the vault is opened (`phases.counting_verdict` does).

Documents differ far more from each other than models do, so not the bits per byte of the two parts
are compared but what the candidate saves on each.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jupiterd.cycle.data.split import DEV, GATE, VAULT
from jupiterd.cycle.gate.paired import measure
from jupiterd.cycle.gate.scores import DocumentScore

ALARM_BPB = 0.01
"""A larger gap is an alarm, where it is more than noise."""

NOISE_ERRORS = 1.645
"""A gap of fewer standard errors would come about by chance once in twenty looks or more."""

_ALPHA = 0.05


@dataclass(frozen=True)
class VaultLook:
    """What the candidate saves on the vault, beside what it saves on text that was looked at."""

    documents: int
    known_documents: int
    known_part: str
    """The part beside it: `dev`, or the gate's own where nothing is held out for that."""
    improvement_bpb: float
    known_improvement_bpb: float
    standard_error_bpb: float
    """Of the gap."""
    gap_bpb: float
    """How much less the candidate saves where nobody looked."""
    is_alarm: bool
    """Whether the text that is looked at was over-fitted."""


def look_into_vault(scores: Sequence[DocumentScore]) -> VaultLook | None:
    """Return what was seen; None where the vault wasn't shown, or has text of one cluster."""
    parts = {part: _of_part(scores, part) for part in (VAULT, DEV, GATE)}
    known = DEV if _speaks(parts[DEV]) else GATE
    if not (_speaks(parts[VAULT]) and _speaks(parts[known])):
        return None
    hidden, shown = (
        measure([s.improvement_bpb for s in part], [s.cluster for s in part], 0.0, _ALPHA)
        for part in (parts[VAULT], parts[known])
    )
    gap = shown.mean_improvement_bpb - hidden.mean_improvement_bpb
    error = math.hypot(hidden.standard_error_bpb, shown.standard_error_bpb)
    return VaultLook(
        documents=len(parts[VAULT]),
        known_documents=len(parts[known]),
        known_part=known,
        improvement_bpb=hidden.mean_improvement_bpb,
        known_improvement_bpb=shown.mean_improvement_bpb,
        standard_error_bpb=error,
        gap_bpb=gap,
        is_alarm=gap > max(ALARM_BPB, NOISE_ERRORS * error),
    )


def _of_part(scores: Sequence[DocumentScore], part: str) -> list[DocumentScore]:
    return [
        score for score in scores if score.part == part and math.isfinite(score.improvement_bpb)
    ]


def _speaks(part: Sequence[DocumentScore]) -> bool:
    return len({score.cluster for score in part}) >= 2
