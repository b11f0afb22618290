"""What a leader does during its term: assigns roles, drives every unfinished cycle and run.

Owns the tasks of one term. Doesn't know how a cycle is driven.
"""

import asyncio
import logging
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from jupiterd.cluster.facts.facts import (
    ClusterFounded,
    NodeAdmitted,
    PairingWindowLocked,
    PairingWindowSet,
    RoleAssigned,
    TokenWithdrawn,
)
from jupiterd.cluster.ledger.island_runs import is_active, is_whole
from jupiterd.cluster.membership.admission_policy import closes_by_itself, shut_with
from jupiterd.cluster.planning.roles import Candidate, assign
from jupiterd.cluster.values.bounds import edit_after
from jupiterd.cycle.base.work_item import Phase
from jupiterd.daemon.cycles.branch_suspension import watch_branches
from jupiterd.daemon.leader.admissions import Admissions
from jupiterd.daemon.leader.placement import Placement
from jupiterd.daemon.leader.progress_board import ProgressBoard
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.errors import JupiterError
from jupiterd.ids import CycleId

if TYPE_CHECKING:
    from jupiterd.daemon.cycles.cycle_driver import CycleDriver
    from jupiterd.daemon.cycles.run_driver import RunDriver
    from jupiterd.daemon.islands.island_task import IslandTask

log = logging.getLogger(__name__)

LOOK_S = 0.5
UNREADABLE_S = 30.0
CLUSTER_LABEL = "jupiter"


@dataclass(frozen=True)
class Founding:
    """What a node's own cluster begins with."""

    admission: NodeAdmitted
    closed: bool
    """Nobody is let in unless somebody opens it."""


async def found_cluster(term: Term, own: Founding) -> None:
    """Write the first entry of a cluster that has none yet."""
    if len(term.replica.ledger) == 0:
        door = (
            (PairingWindowSet(is_open=False, edit=1), PairingWindowLocked(())) if own.closed else ()
        )
        await term.record(ClusterFounded(CLUSTER_LABEL), own.admission, *door)


async def lead(services: TermServices) -> None:
    """Assign roles and drive cycles until cancelled."""
    tasks: dict[CycleId, asyncio.Task[None]] = {}
    async with asyncio.TaskGroup() as group:
        group.create_task(
            watch_branches(services.term, services.board, services.reach), name="lines"
        )
        while True:
            await _try_to_settle(services.term, services.placement, services.admissions)
            for cycle_id, cycle in services.term.state.cycles.items():
                task = tasks.get(cycle_id)
                if cycle.has_nothing_to_do or not is_active(services.term.state.cycles, cycle):
                    if task is not None and not task.done():
                        log.info("cycle_ends", extra={"cycle": cycle_id})
                        task.cancel()
                elif cycle.begun is not None and (task is None or task.done()):
                    tasks[cycle_id] = group.create_task(
                        _run_driver(services, cycle_id), name=f"cycle {cycle_id}"
                    )
            await _wait_for_change(services.term)


async def get_ready() -> None:
    """Load the drivers of cycles: a follower may become leader, and must go on within a moment."""
    try:
        await asyncio.to_thread(_drivers)
    except Exception:  # such as one half of another version: it is logged again when we lead
        log.exception("conductors_not_loaded")


@cache
def _drivers() -> "tuple[type[CycleDriver], type[RunDriver], type[IslandTask]]":
    """Load the drivers of cycles and of runs; an idle daemon does without their 10 MB."""
    from jupiterd.daemon.cycles.cycle_driver import CycleDriver
    from jupiterd.daemon.cycles.run_driver import RunDriver
    from jupiterd.daemon.islands.island_task import IslandTask

    return CycleDriver, RunDriver, IslandTask


async def _run_driver(services: TermServices, cycle: CycleId) -> None:
    of_cycles, of_runs, of_islands = _drivers()
    state = services.term.cycle(cycle)
    kind = of_cycles if state.started is not None else of_runs if is_whole(state) else of_islands
    try:
        driver = kind(services, cycle)
    except JupiterError as error:  # its domain is of another version, whose node may lead later
        await _leave_to_others(services.term, services.board, cycle, error.message)
    else:
        await driver.run()


async def _leave_to_others(term: Term, board: ProgressBoard, cycle: CycleId, reason: str) -> None:
    """Say why a cycle doesn't go on here, and look again much later."""
    log.warning("cycle_unreadable", extra={"cycle": cycle, "reason": reason})
    current = term.cycle(cycle).rounds_committed + 1
    board.begin(cycle, current, Phase.COLLECT, now_s())
    board.explain(cycle, f"this version can't go on with it: {reason}")
    try:
        await asyncio.sleep(UNREADABLE_S)
    finally:
        board.end(cycle)


async def _wait_for_change(term: Term) -> None:
    """Wait for an entry, or a moment: members come and go without one."""
    try:
        async with asyncio.timeout(LOOK_S):
            await term.replica.changed_since(term.replica.version)
    except TimeoutError:
        return


async def _try_to_settle(term: Term, placement: Placement, admissions: Admissions) -> None:
    """Record what time and newcomers call for; what can't be now is tried at the next look."""
    try:
        await _assign_roles(term, placement)
        await _close_when_over(term, admissions)
        if shut := shut_with(term.state, term.self_id):
            await term.record(*shut)
        for token in admissions.token_timer.expired(now_s(), term.state.tokens):
            await term.record(TokenWithdrawn(token, "it is a day old"))
    except JupiterError as error:
        if term.is_over:
            raise
        log.warning("not_recorded", extra={"reason": error.message})


async def _close_when_over(term: Term, admissions: Admissions) -> None:
    state = term.state
    is_open = closes_by_itself(state)
    if admissions.window.is_over(now_s(), state.window_edit, is_open=is_open):
        log.info("window_closed", extra={"reason": "it has been open for ten minutes"})
        await term.record(PairingWindowSet(is_open=False, edit=edit_after(state.window_edit)))


async def _assign_roles(term: Term, placement: Placement) -> None:
    state = term.state
    candidates = [
        Candidate(node, hardware)
        for node in sorted(placement.machines.alive() & set(state.members))
        if (hardware := placement.machines.hardware_of(node)) is not None
    ]
    changes: list[RoleAssigned] = []
    pins = {node: pin.role for node, pin in state.pins.items()}
    roles = assign(
        candidates,
        pins,
        placement.written_roles(),
        placement.machines.program_of(term.self_id),
        placement.let_go(),
    )
    for node, (role, reason) in roles.items():
        known = state.roles.get(node)
        if known is None or (known.role, known.reason) != (str(role), reason):
            edit = 1 if known is None else edit_after(known.edit)
            changes.append(RoleAssigned(node, str(role), reason, edit))
    if changes:
        for change in changes:
            log.info("role_assigned", extra={"node": change.node[:8], "role": change.role})
        await term.record(*changes)
