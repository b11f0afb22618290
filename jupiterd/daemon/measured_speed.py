"""How fast a model was trained here before, as the ledger tells.

Owns reading that from epochs that have ended. Doesn't know why anybody asks. An epoch's time holds
its start as well, so only long ones count, and what is said is rather too little than too much.
"""

from collections.abc import Callable, Collection, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from jupiterd.cluster.cycle_state import CycleState
from jupiterd.cluster.facts import EpochClosed, EpochOpened
from jupiterd.ids import NodeId

if TYPE_CHECKING:
    from jupiterd.cycle.plan import ModelShape
    from jupiterd.daemon.leading import Leading

LEAST_S = 20.0
"""A shorter epoch says more about its start than about its speed."""

NEWEST_EPOCHS = 50
"""So many are looked at: machines and links change, and a run that was often struck has many."""

LEAST_COMPUTED = 0.1
"""Of an epoch's time: so much at the least was computed, whatever its sums are taken for."""


def tokens_per_s_of_a_rank(leading: "Leading", engine: str, shape: "ModelShape") -> float:
    """Return what one rank trained on in a second when that model was last trained; 0: never."""
    return next(
        (
            speed
            for run, opened, closed in _epochs_of(leading, engine, shape)
            if (speed := _tokens(run, opened) / closed.elapsed_s / len(opened.gang))
        ),
        0.0,
    )


def tokens_per_s_of_nodes(
    leading: "Leading",
    engine: str,
    shape: "ModelShape",
    sum_s: Callable[[Collection[NodeId]], float],
) -> dict[NodeId, float]:
    """Return what each node trains on in a second by itself; those that were never measured lack.

    An epoch that it trained alone tells it, the newest such one. Else a gang's does: its ranks
    count alike, since nothing is kept of each, and what their sums took is left out of the time.

    sum_s: how long a gang of these nodes sums in each step; 0 where that isn't known either
    """
    alone: dict[NodeId, float] = {}
    shared: dict[NodeId, float] = {}
    sums_s: dict[frozenset[NodeId], float] = {}
    for run, opened, closed in islice(_epochs_of(leading, engine, shape), NEWEST_EPOCHS):
        last, nodes = run.last_of_epoch(opened.epoch), frozenset(opened.gang)
        tokens = _tokens(run, opened)
        if last is None or tokens <= 0:
            continue
        if nodes not in sums_s:  # a ring's best order takes a while to find
            sums_s[nodes] = sum_s(nodes)
        summing_s = (last.step - opened.from_step) * sums_s[nodes]
        computing_s = max(closed.elapsed_s - summing_s, LEAST_COMPUTED * closed.elapsed_s)
        of_a_rank = tokens / computing_s / len(opened.gang)
        for node in nodes:
            found = alone if len(nodes) == 1 else shared
            found.setdefault(node, of_a_rank * opened.gang.count(node))
    return shared | alone


def _epochs_of(
    leading: "Leading", engine: str, shape: "ModelShape"
) -> Iterator[tuple[CycleState, EpochOpened, EpochClosed]]:
    """Yield the epochs that have trained such a model on such an engine, the newest first."""
    cycles = leading.journal.state.cycles.values()
    for run in sorted(cycles, key=lambda run: run.start_order, reverse=True):
        if _is_of(run, shape.size):
            for opened, closed in reversed(list(_ended(run))):
                if opened.engine.partition("/")[0] == engine:
                    yield run, opened, closed


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
