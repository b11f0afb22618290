"""How fast a model was trained here before, as the ledger tells.

Owns reading that from epochs that have ended. Doesn't know why anybody asks. An epoch's time holds
its start as well, so only long ones count, and what is said is rather too little than too much.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jupiterd.cluster.cycle_state import CycleState
from jupiterd.cluster.facts import EpochClosed, EpochOpened

if TYPE_CHECKING:
    from jupiterd.cycle.plan import ModelShape
    from jupiterd.daemon.leading import Leading

LEAST_S = 20.0
"""A shorter epoch says more about its start than about its speed."""


def tokens_per_s_of_a_rank(leading: "Leading", engine: str, shape: "ModelShape") -> float:
    """Return what one rank trained on in a second when that model was last trained; 0: never."""
    cycles = leading.journal.state.cycles.values()
    runs = sorted(cycles, key=lambda run: run.start_order, reverse=True)
    return next(
        (
            speed
            for run in runs
            if _is_of(run, shape.size)
            for opened, closed in reversed(list(_ended(run)))
            if opened.engine.partition("/")[0] == engine
            and (speed := _tokens(run, opened) / closed.elapsed_s / len(opened.gang))
        ),
        0.0,
    )


def _is_of(run: CycleState, size: str) -> bool:
    if run.training is not None:
        return run.training.model == size
    return run.started is not None and run.started.size == size


def _ended(run: CycleState) -> Iterator[tuple[EpochOpened, EpochClosed]]:
    for epoch, closed in sorted(run.epochs_closed.items()):
        opened = run.epochs_opened.get(epoch)
        if opened is not None and closed.elapsed_s >= LEAST_S:
            yield opened, closed


def _tokens(run: CycleState, opened: EpochOpened) -> int:
    """Return how many tokens an epoch has added to its line."""
    last = run.last_of_epoch(opened.epoch)
    start = run.checkpoint(opened.from_checkpoint)
    return 0 if last is None else last.tokens - (0 if start is None else start.tokens)
