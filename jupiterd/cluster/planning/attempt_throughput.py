"""How fast gangs have trained, as their attempts tell.

Owns which attempts say anything, and what each has done. Pure. An attempt's time holds its start as
well, so only long ones count. Doesn't know what was predicted, or of which model anybody asks.
"""

from collections.abc import Iterator
from typing import Final

from jupiterd.cluster.facts.attempt_facts import AttemptClosed, AttemptOpened
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.planning.outer_throughput import Stretch

LEAST_S: Final = 20.0
"""A shorter attempt says more about its start than about its speed."""


def ended(run: CycleState) -> Iterator[tuple[AttemptOpened, AttemptClosed]]:
    """Yield the attempts that have ended and were long enough, in the order of their numbers."""
    for attempt, closed in sorted(run.attempts_closed.items()):
        opened = run.attempts_opened.get(attempt)
        if opened is not None and closed.elapsed_s >= LEAST_S:
            yield opened, closed


def stretch(run: CycleState, opened: AttemptOpened, closed: AttemptClosed) -> Stretch:
    """Return what an attempt has added to its line, and how long that took, its start among it."""
    last, start = run.last_of_attempt(opened.attempt), run.checkpoint(opened.from_checkpoint)
    if last is None:
        return Stretch(0, 0, closed.elapsed_s)
    before = 0 if start is None else start.tokens
    return Stretch(last.tokens - before, last.step - opened.from_step, closed.elapsed_s)
