"""How fast gangs have trained, as their epochs tell.

Owns which epochs say anything, and what each has done. Pure. An epoch's time holds its start as
well, so only long ones count. Doesn't know what was predicted, or of which model anybody asks.
"""

from collections.abc import Iterator
from typing import Final

from jupiterd.cluster.facts.facts import EpochClosed, EpochOpened
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.planning.outer_throughput import Stretch

LEAST_S: Final = 20.0
"""A shorter epoch says more about its start than about its speed."""


def ended(run: CycleState) -> Iterator[tuple[EpochOpened, EpochClosed]]:
    """Yield the epochs that have ended and were long enough, in the order of their numbers."""
    for epoch, closed in sorted(run.epochs_closed.items()):
        opened = run.epochs_opened.get(epoch)
        if opened is not None and closed.elapsed_s >= LEAST_S:
            yield opened, closed


def stretch(run: CycleState, opened: EpochOpened, closed: EpochClosed) -> Stretch:
    """Return what an epoch has added to its line, and how long that took, its start among it."""
    last, start = run.last_of_epoch(opened.epoch), run.checkpoint(opened.from_checkpoint)
    if last is None:
        return Stretch(0, 0, closed.elapsed_s)
    before = 0 if start is None else start.tokens
    return Stretch(last.tokens - before, last.step - opened.from_step, closed.elapsed_s)
