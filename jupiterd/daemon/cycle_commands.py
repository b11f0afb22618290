"""Stopping a cycle, pausing it, and going on with it: the commands that do it.

Owns their checks and what they record; they run at the leader. Doesn't know how a cycle is
conducted: it goes on from what the ledger says, on the line that counts by now.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from jupiterd.cluster.cycle_state import RUNNING, STOPPED, CycleState
from jupiterd.cluster.facts import CycleStarted, CycleStateSet
from jupiterd.cluster.island_runs import stopped_with, with_islands
from jupiterd.daemon.member_commands import Arguments, Command
from jupiterd.daemon.pausing import BY_A_PERSON, paused_now
from jupiterd.daemon.steering_answers import answers
from jupiterd.daemon.train_commands import check_that_no_training_runs
from jupiterd.errors import ConflictError, NotFoundError, UsageError
from jupiterd.ids import short

if TYPE_CHECKING:
    from jupiterd.daemon.leading import Leading
    from jupiterd.daemon.node import Node

BEGIN_ANEW = "jupiterctl cycle start --domain NAME begins a new one"

Begun = tuple[CycleState, CycleStarted]


async def signed(node: "Node", arguments: Arguments) -> dict[str, Any]:
    """Return a command's arguments with the node where it was given."""
    return {**arguments, "node": node.identity.node_id}


async def stop_cycle(leading: "Leading", arguments: Arguments) -> dict[str, Any]:
    """Stop the cycle whose id begins so, running or paused, or the one that is.

    Raises:
        NotFoundError: none is running, or not that one.
    """
    cycle, begun = going_on(leading, str(arguments.get("cycle") or ""))
    stopped = CycleStateSet(begun.cycle, STOPPED, "stopped by a person", cycle.wanted_edit + 1)
    await leading.record(*with_islands(leading.journal.state.cycles, stopped))
    return {"cycle": begun.cycle}


async def pause_cycle(leading: "Leading", arguments: Arguments) -> dict[str, Any]:
    """Pause the cycle whose id begins so, or the one that runs.

    Its gang saves a checkpoint and ends, as it does where a cycle is stopped; an item that runs
    isn't recorded yet, and is done anew.

    Raises:
        ConflictError: it is paused already.
        NotFoundError: none is running, or not that one.
    """
    cycle, begun = going_on(leading, str(arguments.get("cycle") or ""))
    if cycle.paused is not None:
        raise ConflictError(
            f"cycle {short(begun.cycle)} is paused already",
            f"jupiterctl cycle resume {short(begun.cycle)}",
        )
    node = str(arguments.get("node") or leading.self_id)
    paused = paused_now(cycle, begun.cycle, BY_A_PERSON, node)
    ended = stopped_with(leading.journal.state.cycles, begun.cycle, "its cycle is paused")
    await leading.record(paused, *ended)
    return {"cycle": begun.cycle, "domain": begun.domain, "at": paused.at}


async def resume_cycle(leading: "Leading", arguments: Arguments) -> dict[str, Any]:
    """Go on with the cycle whose id begins so, or with the one that was paused, or started last.

    What people have answered on the way is recorded with it, see `steering_answers`.

    Raises:
        ConflictError: a cycle is running, or that one has nothing left to do, or it is too late to
            do something again.
        InvalidDomainError: a setting can't have that value.
        NotFoundError: no such cycle was stopped.
        UsageError: several are meant, or a setting can't be changed.
    """
    started = _started(leading)
    _check_that_none_runs(cycle for cycle, _ in started)
    check_that_no_training_runs(leading)
    cycle, begun = _meant(started, str(arguments.get("cycle") or ""))
    _check_that_it_can_go_on(cycle, begun)
    going_on = CycleStateSet(begun.cycle, RUNNING, "resumed by a person", cycle.wanted_edit + 1)
    await leading.record(*answers(cycle, begun, arguments), going_on)
    return {"cycle": begun.cycle, "domain": begun.domain}


def running_cycle(cycles: Iterable[CycleState], wanted: str = "") -> CycleState | None:
    """Return a cycle that runs and whose id begins so; groups apart may each have one."""
    running = (
        cycle
        for cycle in cycles
        if cycle.started and not cycle.finished and cycle.started.cycle.startswith(wanted)
    )
    return next(running, None)


def _started(leading: "Leading") -> list[Begun]:
    """Return all cycles, those first that are paused, and of them the one started last."""
    found = [
        (cycle, cycle.started)
        for cycle in leading.journal.state.cycles.values()
        if cycle.started is not None
    ]
    return sorted(
        found, key=lambda pair: (pair[0].paused is not None, pair[0].start_order), reverse=True
    )


def going_on(leading: "Leading", wanted: str) -> Begun:
    """Return the cycle that runs, or is paused, and whose id begins so; a running one first."""
    found = [pair for pair in _started(leading) if pair[0].goes_on]
    if not found:
        raise NotFoundError("no cycle is running", "jupiterctl cycle start --domain NAME")
    named = [pair for pair in found if pair[1].cycle.startswith(wanted)]
    if not named:
        raise NotFoundError(f"no running cycle is called {wanted}", "jupiterctl cycle status")
    return min(named, key=lambda pair: pair[0].finished)


def _check_that_none_runs(started: Iterable[CycleState]) -> None:
    cycle = running_cycle(started)
    if cycle is not None and cycle.started is not None:
        raise ConflictError(
            f"cycle {short(cycle.started.cycle)} on {cycle.started.domain} is running already",
            "jupiterctl cycle watch follows it; jupiterctl cycle stop ends it",
        )


def _meant(started: list[Begun], wanted: str) -> Begun:
    """Return the cycle that is named, or the first of those that were paused or stopped."""
    if not wanted:
        stopped = (pair for pair in started if _what_hinders(pair[0]) == "")
        if (latest := next(stopped, None)) is not None:
            return latest
        raise NotFoundError("no cycle has been stopped", BEGIN_ANEW)
    named = [pair for pair in started if pair[1].cycle.startswith(wanted)]
    if not named:
        raise NotFoundError(f"no cycle is called {wanted}", "jupiterctl cycle list shows them")
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


COMMANDS: Mapping[str, Command] = {
    "cycle.pause": pause_cycle,
    "cycle.resume": resume_cycle,
    "cycle.stop": stop_cycle,
}
