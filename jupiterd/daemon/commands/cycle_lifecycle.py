"""Starting, stopping and pausing a cycle, and going on with it, also beyond its end.

Owns the commands: their checks, and what they record, at the leader. Doesn't know how a cycle is
conducted: it goes on from what the ledger says, on the line that counts by now.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from jupiterd.cluster.facts.facts import CycleStarted, CycleStateSet, Fact
from jupiterd.cluster.facts.lifecycle_facts import CycleExtended
from jupiterd.cluster.ledger.cycle_state import RUNNING, STOPPED, CycleState
from jupiterd.cluster.ledger.island_runs import (
    counting_islands,
    revived_with,
    stopped_with,
    with_islands,
)
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.values.bounds import edit_after
from jupiterd.daemon.catalog.cycle_lookup import Begun, cycles_called, meant_cycle, newest_first
from jupiterd.daemon.catalog.pause_facts import BY_A_PERSON, paused_now
from jupiterd.daemon.commands.domain_questions import check_questions
from jupiterd.daemon.commands.review_answers import answers
from jupiterd.daemon.commands.start_cycle import MAX_ROUNDS, planned_cycle
from jupiterd.daemon.commands.train_commands import check_that_no_training_runs
from jupiterd.daemon.leader.artifact_reach import ArtifactReach
from jupiterd.daemon.leader.fleet_view import FleetView
from jupiterd.daemon.leader.machines import Machines
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.planning.extension_outlook import extension_lines
from jupiterd.errors import ConflictError, NotFoundError, UsageError
from jupiterd.ids import short
from jupiterd.protocol.commands.cycle_commands import (
    ExtendCycle,
    PauseCycle,
    PlanCycle,
    ResumeCycle,
    StartCycle,
    StopCycle,
)

BEGIN_ANEW = "jupiterctl cycle start --domain NAME begins a new one"


async def start_cycle(
    term: Term, fleet: FleetView, reach: ArtifactReach, command: StartCycle
) -> dict[str, Any]:
    """Record a cycle; raises what `planned_cycle` does, and ConflictError where something runs."""
    check_that_nothing_runs(term.state)
    started, forecast = planned_cycle(fleet, command)
    await check_models(reach, started)
    await check_questions(reach, started)
    await term.record(started)
    return {"cycle": started.cycle, "domain": started.domain, **forecast}


async def plan_cycle(fleet: FleetView, command: PlanCycle) -> dict[str, Any]:
    """Return what is to be expected of a cycle; raises what `start_cycle` would."""
    if command.is_start:
        check_that_nothing_runs(fleet.state)
    started, forecast = planned_cycle(fleet, command)
    return {"domain": started.domain, "rounds": started.rounds, **forecast}


async def stop_cycle(term: Term, command: StopCycle) -> dict[str, Any]:
    """Stop the cycle that is named, running or paused, or the one that is.

    Raises:
        NotFoundError: none is running, or not that one.
    """
    cycle, begun = going_on(term.state, command.cycle or "")
    edit = edit_after(cycle.wanted_edit)
    stopped = CycleStateSet(begun.cycle, STOPPED, "stopped by a person", edit)
    await term.record(*with_islands(term.state.cycles, stopped))
    return {"cycle": begun.cycle}


async def pause_cycle(term: Term, command: PauseCycle) -> dict[str, Any]:
    """Pause the cycle that is named, or the one that runs.

    Its gang saves a checkpoint and ends, as it does where a cycle is stopped; an item that runs
    isn't recorded yet, and is done anew.

    Raises:
        ConflictError: it is paused already.
        NotFoundError: none is running, or not that one.
    """
    cycle, begun = going_on(term.state, command.cycle or "")
    if cycle.paused is not None:
        raise ConflictError(
            f"cycle {short(begun.cycle)} is paused already",
            f"jupiterctl cycle resume {short(begun.cycle)}",
        )
    node = command.node or term.self_id
    paused = paused_now(cycle, begun.cycle, BY_A_PERSON, node)
    ended = stopped_with(term.state.cycles, begun.cycle, "its cycle is paused")
    await term.record(paused, *ended)
    return {"cycle": begun.cycle, "domain": begun.domain, "at": paused.at}


async def resume_cycle(term: Term, command: ResumeCycle) -> dict[str, Any]:
    """Go on with the cycle that is named, or with the one that was paused, or started last.

    One that failed goes on from what it has: why it failed counts no more, nor why its islands did
    with it. What people have answered on the way is recorded with it, see `review_answers`.

    Raises:
        ConflictError: a cycle is running, or that one has nothing left to do, or it is too late to
            do something again.
        InvalidDomainError: a setting can't have that value.
        NotFoundError: no such cycle was stopped.
        UsageError: several are meant, or a setting can't be changed.
    """
    started = _started(term.state)
    check_that_nothing_runs(term.state)
    cycle, begun = _meant(started, command.cycle or "")
    _check_that_it_can_go_on(cycle, begun)
    revived = revived_with(term.state.cycles, begun.cycle)
    edit = edit_after(cycle.wanted_edit)
    going_on = CycleStateSet(begun.cycle, RUNNING, "resumed by a person", edit)
    await term.record(*answers(cycle, begun, command), *revived, going_on)
    return {"cycle": begun.cycle, "domain": begun.domain, "failed": bool(revived)}


async def extend_cycle(term: Term, command: ExtendCycle) -> dict[str, Any]:
    """Give a cycle more rounds: that which is named, or the one started last; see below."""
    facts, told = planned_extension(term.state, command)
    await term.record(*facts)
    return told


def planned_extension(state: State, command: ExtendCycle) -> tuple[Sequence[Fact], dict[str, Any]]:
    """Return what is recorded of a cycle that gets more rounds, and what is said of it.

    One that has ended, or was stopped, runs then; one that is paused stays so. `was` says which.

    Its models, data and looks at the held-out text are the same cycle's: alpha that was spent stays
    spent.

    Raises:
        ConflictError: it failed, or it would have to run beside another.
        NotFoundError: there is no such cycle.
        UsageError: several are meant, or so many rounds can't be.
    """
    cycle, begun = meant_cycle(state, command.cycle or "")
    if cycle.failed is not None:
        raise ConflictError(
            f"cycle {short(begun.cycle)} failed: {cycle.failed.message}",
            f"jupiterctl cycle resume {short(begun.cycle)} goes on with it first",
        )
    more, before = command.rounds, cycle.rounds_wanted
    if not 1 <= more <= MAX_ROUNDS - before:
        raise UsageError(
            f"a cycle has at most {MAX_ROUNDS} rounds: {before} and {more} more can't be"
        )
    was = _state_before(cycle)
    extended = CycleExtended(begun.cycle, before + more, edit_after(cycle.lifecycle.rounds_edit))
    told = {
        "cycle": begun.cycle,
        "domain": begun.domain,
        "rounds": extended.rounds,
        "from_round": cycle.rounds_committed + 1,
        "was": was,
    }
    return [extended, *_running_again(state, cycle, begun)], told


async def predicted_extension(
    state: State, machines: Machines, command: ExtendCycle
) -> dict[str, Any]:
    """Return what is said of more rounds before they are ordered; raises what the order would."""
    _, told = planned_extension(state, command)
    cycles = state.cycles
    cycle, more = cycles[told["cycle"]], command.rounds
    islands = counting_islands(cycles, told["cycle"])
    return {**told, "lines": extension_lines(cycle, islands, more, machines.names())}


def _state_before(cycle: CycleState) -> str:
    """Return what it was doing as it was extended: its front end says what changes with it."""
    if cycle.goes_on:
        return "paused" if cycle.paused is not None else RUNNING
    return "finished" if cycle.rounds_committed >= cycle.rounds_wanted else STOPPED


def _running_again(state: State, cycle: CycleState, begun: CycleStarted) -> list[CycleStateSet]:
    """Return what lets a cycle that has ended run; nothing for one that runs, or is paused."""
    if cycle.goes_on:
        return []
    check_that_nothing_runs(state)
    edit = edit_after(cycle.wanted_edit)
    return [CycleStateSet(begun.cycle, RUNNING, "extended by a person", edit)]


def running_cycle(cycles: Iterable[CycleState], wanted: str = "") -> CycleState | None:
    """Return a cycle that runs and whose id begins so; groups apart may each have one."""
    running = (
        cycle
        for cycle in cycles
        if cycle.started and not cycle.has_nothing_to_do and cycle.started.cycle.startswith(wanted)
    )
    return next(running, None)


def _started(state: State) -> list[Begun]:
    """Return all cycles, those first that are paused, and of them the one started last."""
    return sorted(newest_first(state), key=lambda pair: pair[0].paused is None)


def going_on(state: State, wanted: str) -> Begun:
    """Return the cycle that runs, or is paused, and is called so; a running one first."""
    found = [pair for pair in _started(state) if pair[0].goes_on]
    if not found:
        raise NotFoundError("no cycle is running", "jupiterctl cycle start --domain NAME")
    named = cycles_called(found, wanted)
    if not named:
        raise NotFoundError(f"no running cycle is called {wanted}", "jupiterctl cycle status")
    return min(named, key=lambda pair: pair[0].has_nothing_to_do)


def check_that_nothing_runs(state: State) -> None:
    """Raise ConflictError where a cycle or a training does: machines do one thing at a time."""
    cycle = running_cycle(state.cycles.values())
    if cycle is not None and cycle.started is not None:
        raise ConflictError(
            f"cycle {short(cycle.started.cycle)} on {cycle.started.domain} is running already",
            "jupiterctl cycle watch follows it; jupiterctl cycle stop ends it",
        )
    check_that_no_training_runs(state)


def _meant(started: list[Begun], wanted: str) -> Begun:
    """Return the cycle that is named, or the first that was paused or stopped, or failed."""
    if not wanted:
        stopped = (pair for pair in started if _what_hinders(pair[0]) == "")
        if (latest := next(stopped, None)) is not None:
            return latest
        raise NotFoundError("no cycle was stopped or failed", BEGIN_ANEW)
    if named := cycles_called(started, wanted):
        return named[0]
    raise NotFoundError(f"no cycle is called {wanted}", "jupiterctl cycle list shows them")


def _check_that_it_can_go_on(cycle: CycleState, begun: CycleStarted) -> None:
    if why := _what_hinders(cycle):
        named = short(begun.cycle)
        raise ConflictError(
            f"cycle {named} can't go on: {why}",
            f"jupiterctl cycle extend {named} --rounds N gives it more",
        )


def _what_hinders(cycle: CycleState) -> str:
    """Say why a cycle that isn't running has nothing left to do; empty where it has."""
    return "all of its rounds are done" if cycle.rounds_committed >= cycle.rounds_wanted else ""


async def check_models(reach: ArtifactReach, started: CycleStarted) -> None:
    """Raise NotFoundError where nobody in reach has the model that is to generate, or to judge."""
    for said in (started.generator, started.judge):
        artifact = str(said.get("artifact", ""))
        if artifact and not await reach.is_in_reach(artifact):
            raise NotFoundError(
                f"no node in reach holds the model {short(artifact)}",
                "name its folder: it is taken into the cluster from there",
            )
