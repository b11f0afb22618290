"""Going on with a cycle that was stopped: the command that does it.

Owns its checks and what it records; it runs at the leader. Doesn't know how a cycle is conducted:
it goes on from what the ledger says, on the line that counts by now.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from jupiterd.cluster.cycle_state import RUNNING, CycleState
from jupiterd.cluster.facts import CycleStarted, CycleStateSet
from jupiterd.daemon.member_commands import Arguments, Command
from jupiterd.daemon.train_commands import check_that_no_training_runs
from jupiterd.errors import ConflictError, NotFoundError, UsageError
from jupiterd.ids import short

if TYPE_CHECKING:
    from jupiterd.daemon.leading import Leading

BEGIN_ANEW = "jupiterctl cycle start --domain NAME begins a new one"


async def resume_cycle(leading: "Leading", arguments: Arguments) -> dict[str, Any]:
    """Go on with the cycle whose id begins so, or with the one that was started last.

    Raises:
        ConflictError: a cycle is running, or that one has nothing left to do.
        NotFoundError: no such cycle was stopped.
        UsageError: several are meant.
    """
    started = [each for each in leading.journal.state.cycles.values() if each.started is not None]
    _check_that_none_runs(started)
    check_that_no_training_runs(leading)
    cycle, begun = _meant(started, str(arguments.get("cycle") or ""))
    _check_that_it_can_go_on(cycle, begun)
    edit = cycle.wanted_edit + 1
    await leading.record(CycleStateSet(begun.cycle, RUNNING, "resumed by a person", edit))
    return {"cycle": begun.cycle, "domain": begun.domain}


def _check_that_none_runs(started: Iterable[CycleState]) -> None:
    for cycle in started:
        if cycle.started is not None and not cycle.finished:
            raise ConflictError(
                f"cycle {short(cycle.started.cycle)} on {cycle.started.domain} is running already",
                "jupiterctl cycle watch follows it; jupiterctl cycle stop ends it",
            )


def _meant(cycles: Iterable[CycleState], wanted: str) -> tuple[CycleState, CycleStarted]:
    """Return the cycle that is named, or of those that were stopped the one started last."""
    named = [
        (cycle, cycle.started)
        for cycle in sorted(cycles, key=lambda cycle: cycle.start_order, reverse=True)
        if cycle.started is not None and cycle.started.cycle.startswith(wanted)
    ]
    if not wanted:
        stopped = (pair for pair in named if _what_hinders(pair[0]) == "")
        if (latest := next(stopped, None)) is not None:
            return latest
        raise NotFoundError("no cycle has been stopped", BEGIN_ANEW)
    if not named:
        raise NotFoundError(f"no cycle is called {wanted}", "jupiterctl cluster branches")
    if len(named) > 1:
        ids = ", ".join(sorted(begun.cycle for _, begun in named))
        raise UsageError(f"{wanted} could be any of {ids}", "name it in full")
    return named[0]


def _check_that_it_can_go_on(cycle: CycleState, begun: CycleStarted) -> None:
    if why := _what_hinders(cycle):
        raise ConflictError(f"cycle {short(begun.cycle)} can't go on: {why}", BEGIN_ANEW)


def _what_hinders(cycle: CycleState) -> str:
    """Say why a cycle that isn't running has nothing left to do; empty where it was stopped."""
    if cycle.failed is not None:
        return f"it failed: {cycle.failed.message}"
    if cycle.started is not None and cycle.rounds_committed >= cycle.started.rounds:
        return "all of its rounds are done"
    return ""


COMMANDS: Mapping[str, Command] = {"cycle.resume": resume_cycle}
