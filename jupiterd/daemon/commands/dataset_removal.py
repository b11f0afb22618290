"""Ending a data set that is being made, and removing one from the list.

Owns these two commands; they run at the leader. Doesn't know how text becomes tokens. What was made
stays in the stores, for the ledger names it, and so may a model that was trained on it.
"""

from collections.abc import Iterator
from typing import Any

from jupiterd.cluster.facts.facts import CycleStateSet, DataRequested
from jupiterd.cluster.ledger.cycle_state import STOPPED, CycleState
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.values.run_names import meant
from jupiterd.daemon.catalog.dataset_catalog import LIST, REMOVED, data_sets, named_data, title
from jupiterd.daemon.leader.term import Term
from jupiterd.errors import ConflictError, NotFoundError
from jupiterd.protocol.commands.data_commands import RemoveData, StopData


async def stop_data(term: Term, command: StopData) -> dict[str, Any]:
    """Stop making a data set: the one that is named, or the newest.

    Raises:
        ConflictError: it is part of a training, which is stopped as a whole.
        NotFoundError: none is being made, or not that one.
        UsageError: several ids begin so.
    """
    wanted = command.data
    known = list(data_sets(term.state))
    making = [pair for pair in known if _is_being_made(pair[0])]
    if not making:
        raise NotFoundError("no data set is being made", LIST)
    run, asked = _of_name(known, wanted) if wanted else making[0]
    if not _is_being_made(run):
        raise NotFoundError(f"the data set {title(asked.cycle, asked.name)} isn't being made", LIST)
    if run.training is not None:
        raise ConflictError(
            f"training {title(asked.cycle, asked.name)} makes it for itself",
            f"jupiterctl train stop {run.training.name} ends both",
        )
    await term.record(_stopped(run, asked, "stopped by a person"))
    return {"data": asked.cycle, "name": asked.name}


async def remove_data(term: Term, command: RemoveData) -> dict[str, Any]:
    """Remove a data set from the list; its name is free again.

    Raises:
        ConflictError: it is being made, or a training needs it, or made it and may go on.
        NotFoundError: no data set is called so.
        UsageError: several ids begin so.
    """
    run, asked = _of_name(list(data_sets(term.state)), command.data)
    if _is_being_made(run):
        raise ConflictError(
            f"the data set {title(asked.cycle, asked.name)} is being made",
            f"first stop it: jupiterctl data stop {asked.name}",
        )
    if user := next(_trainings_on(term.state, asked), None):
        raise ConflictError(
            f"training {user} needs the data set {title(asked.cycle, asked.name)}",
            "wait for its end, or stop it: jupiterctl train stop",
        )
    if run.training is not None and not run.is_over:
        raise ConflictError(
            f"training {run.training.name} made it for itself, and may go on",
            "jupiterctl train start --resume goes on; once that is over, it can be removed",
        )
    await term.record(_stopped(run, asked, REMOVED))
    return {"data": asked.cycle, "name": asked.name}


def _of_name(
    known: list[tuple[CycleState, DataRequested]], wanted: str
) -> tuple[CycleState, DataRequested]:
    if found := meant([named_data(run, asked) for run, asked in known], wanted):
        return found[0]
    raise NotFoundError(f"no data set is called {wanted}", LIST)


def _is_being_made(run: CycleState) -> bool:
    return run.prepared is None and not run.has_nothing_to_do


def _trainings_on(state: State, asked: DataRequested) -> Iterator[str]:
    """Yield the names of trainings that read it, or are paused."""
    for run in state.cycles.values():
        if run.training is not None and run.training.data == asked.cycle and run.goes_on:
            yield run.training.name


def _stopped(run: CycleState, asked: DataRequested, reason: str) -> CycleStateSet:
    return CycleStateSet(asked.cycle, STOPPED, reason, run.wanted_edit + 1)
