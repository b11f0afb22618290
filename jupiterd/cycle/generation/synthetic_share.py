"""How much of a round's text may be synthetic: raised where that was shown to help, else lowered.

Owns the fold over the rounds' controls. Doesn't know how a control is run, or what is packed.

The control of a round trains small students on what the round packed and on real text alone. It
decides by what was shown: a difference that may be chance changes nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from jupiterd.cycle.gate.proxy import ArmComparison

STEP: Final = 0.05
"""What the share rises by: small, since the share that is best differs from domain to domain."""

FALL: Final = 0.5
"""What it is multiplied by where the text did harm."""


@dataclass(frozen=True)
class ControlResult:
    """What came of one round's control."""

    round: int
    compared: ArmComparison
    """The text that was packed beside real text alone."""


@dataclass(frozen=True)
class SyntheticShare:
    """The greatest share of a round's bytes that may be synthetic, and why."""

    share: float
    reason: str


def share_after(controls: Iterable[ControlResult], start: float, cap: float) -> SyntheticShare:
    """Return the share of the round after these controls, in whatever order they come.

    Args:
        controls: of all rounds before that had synthetic text.
        start: the share of the first round.
        cap: the most that is ever right with the generator in force.
    """
    found = SyntheticShare(
        min(start, cap), f"{min(start, cap):.1%} to begin with: no round's control has decided yet"
    )
    for control in sorted(controls, key=lambda each: each.round):
        found = _after(found.share, control, cap)
    return found


def _after(before: float, control: ControlResult, cap: float) -> SyntheticShare:
    compared, number = control.compared, control.round
    if compared.is_worse:
        share = before * FALL
        what = f"it harmed small students in round {number}, so the share fell from {before:.1%}"
    elif not compared.is_better:
        share = before
        what = f"round {number} showed neither that it helps nor that it harms"
    elif before >= cap:
        share = before
        what = f"it helped small students in round {number}, and there is never more than that"
    else:
        share = min(before + STEP, cap)
        what = f"it helped small students in round {number}, so the share rose from {before:.1%}"
    return SyntheticShare(share, f"{share:.1%}: {what} ({compared.text()})")
