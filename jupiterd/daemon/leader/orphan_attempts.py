"""Attempts of a cycle that are open beside the one its leader follows.

Owns closing them. Groups that were apart may each have trained the cycle; where they are one again,
the gang of the leader that stepped down would go on until nobody has followed it for long, and its
members could join no other. What its members do once it is closed is theirs (`order_executor`).
"""

import asyncio
import logging

from jupiterd.cluster.facts.attempt_facts import AttemptClosed
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.errors import JupiterError
from jupiterd.ids import CycleId

log = logging.getLogger(__name__)

LOOK_S = 0.5

MEETING_S = 3.0
"""Two leaders that meet settle within a second which of them stays: until then nothing is closed,
for it might be the other one's."""

REASON = "another gang trains this cycle"


async def close_strays(term: Term, cycle: CycleId, attempt: int) -> None:
    """Close whatever stays open beside this attempt, for ever."""
    seen_s: dict[int, float] = {}
    while True:
        await asyncio.sleep(LOOK_S)
        for other in _open_beside(term, cycle, attempt):
            if now_s() - seen_s.setdefault(other, now_s()) >= MEETING_S:
                await _close(term, cycle, other)


def _open_beside(term: Term, cycle: CycleId, attempt: int) -> list[int]:
    opened = [each.attempt for each in term.cycle(cycle).open_attempts]
    return [other for other in opened if other != attempt] if attempt in opened else []


async def _close(term: Term, cycle: CycleId, attempt: int) -> None:
    try:
        await term.record(AttemptClosed(cycle, attempt, REASON))
        log.info("orphan_attempt_closed", extra={"attempt": attempt})
    except JupiterError as error:
        extra = {"attempt": attempt, "reason": error.message}
        log.warning("attempt_left_open", extra=extra)
