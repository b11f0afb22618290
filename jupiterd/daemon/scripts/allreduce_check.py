"""`check.sync`: whether the machines that would train can add up what they have.

Owns who takes part, and what becomes of each rank's answer. The ranks meet as those of a gang do
(`rendezvous`), in worker processes that end with the check (`workers.train.allreduce_check`).
"""

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final

from jupiterd.cluster.planning.engines import AUTO, MLX, EngineChoice, choose_engine
from jupiterd.cluster.planning.rank_placement import device_of, place_of
from jupiterd.cycle.base.work_item import WorkResult
from jupiterd.daemon.gangs.rendezvous import Rendezvous, meet_at_store, meet_in_ring
from jupiterd.daemon.leader.connectivity import Connectivity
from jupiterd.daemon.leader.machines import Machines
from jupiterd.daemon.leader.placement import Placement
from jupiterd.daemon.leader.work_calls import WorkCalls
from jupiterd.daemon.planning.gang_plan import trainers
from jupiterd.daemon.planning.rank_order import by_links
from jupiterd.daemon.runtime.work_events import Finished, WorkOrder
from jupiterd.daemon.scripts.script_placement import chosen_nodes
from jupiterd.error_groups import all_of
from jupiterd.errors import (
    BadRouteError,
    ConflictError,
    JupiterError,
    PeerUnreachableError,
    TimedOutError,
    WorkFailedError,
)
from jupiterd.ids import CycleId, NodeId

if TYPE_CHECKING:
    from jupiterd.cluster.values.hardware import Hardware

LONGEST_S: Final = 100.0
MEETING_S: Final = 60.0
SIZE_BYTES: Final = 16 << 20
"""Of the larger vector: half a second on a wire of a gigabit."""

Row = dict[str, Any]


class AllreduceCheck:
    """One check at a time, since two would measure each other."""

    def __init__(self) -> None:
        self._is_running = False

    async def run(
        self,
        placement: Placement,
        calls: WorkCalls,
        connectivity: Connectivity,
        arguments: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Return a row for each machine: its rank, and how the sum went there.

        Raises:
            ConflictError: another check runs.
            JupiterError: there is nobody to check, or a machine that was named can't be had.
        """
        if self._is_running:
            raise ConflictError("a check of this kind runs already", "try again in a minute")
        self._is_running = True
        try:
            machines = _machines(placement, str(arguments.get("nodes") or ""))
            wanted = str(arguments.get("engine") or AUTO)
            choice = by_links(connectivity, choose_engine(wanted, machines))
            rows = await _rows(placement.machines, calls, connectivity, choice)
        finally:
            self._is_running = False
        left_out = [
            {
                **_row(placement.machines, node, None, choice),
                "result": "left out",
                "note": choice.reason,
            }
            for node in machines
            if node not in choice.gang
        ]
        return {"engine": choice.label, "reason": choice.reason, "nodes": [*rows, *left_out]}


def _machines(placement: Placement, wanted: str) -> "dict[NodeId, Hardware]":
    """Return the machines that would train just now, or those requested."""
    if not wanted:
        found = trainers(placement)
    else:
        meant = chosen_nodes(
            wanted,
            placement.machines.names(),
            placement.machines.alive(),
            placement.machines.self_id,
        )
        known = {
            node: placement.machines.hardware_of(node)
            for node in meant
            if placement.machines.is_alike(node)
        }
        found = {node: hardware for node, hardware in known.items() if hardware is not None}
    if not found:
        raise PeerUnreachableError("no node that is alive can train")
    return found


async def _rows(
    machines: Machines, calls: WorkCalls, connectivity: Connectivity, choice: EngineChoice
) -> list[Row]:
    rows = [_row(machines, node, rank, choice) for rank, node in enumerate(choice.gang)]
    orders = _Orders(machines, calls, connectivity, choice)
    ranks: list[asyncio.Future[WorkResult]] = []
    failure: JupiterError | None = None
    try:
        async with asyncio.timeout(MEETING_S):
            meeting = await orders.meeting()
            ranks += [
                asyncio.ensure_future(_result(calls, node, orders.rank(meeting, rank)))
                for rank, node in enumerate(choice.gang)
            ]
            await _settled(ranks)
    except* JupiterError as group:
        failure = all_of(group)[0]
    except* TimeoutError:
        failure = TimedOutError(f"no sum within {MEETING_S:g} s")
    if failure is not None:
        return [_failed(row, failure) for row in rows]
    return [_answered(row, rank) for row, rank in zip(rows, ranks, strict=True)]


async def _settled(ranks: Sequence[asyncio.Future[WorkResult]]) -> None:
    """Wait for all; once one has failed, the others would wait for it."""
    try:
        await asyncio.wait(ranks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for rank in ranks:
            rank.cancel()
        await asyncio.wait(ranks)


async def _result(calls: WorkCalls, node: NodeId, order: WorkOrder) -> WorkResult:
    async with aclosing(calls.run(node, order)) as events:
        async for event in events:
            if isinstance(event, Finished):
                return event.result
    raise WorkFailedError("it ended without a result")


class _Orders:
    """The orders of one check."""

    def __init__(
        self, machines: Machines, calls: WorkCalls, connectivity: Connectivity, choice: EngineChoice
    ) -> None:
        self._machines, self._calls, self._connectivity = machines, calls, connectivity
        self._choice = choice
        self._check = CycleId(f"check-{secrets.token_hex(4)}")

    async def meeting(self) -> Rendezvous:
        """Prove the routes, and say where the ranks meet."""
        if self._choice.engine == MLX:
            return await meet_in_ring(self._connectivity, self._choice.gang)
        return await meet_at_store(self._connectivity, self._choice.gang, self._check)

    def rank(self, meeting: Rendezvous, rank: int) -> WorkOrder:
        """Return what one rank does."""
        gang = self._choice.gang
        place = place_of(gang, rank)
        hardware = self._machines.hardware_of(gang[rank])
        params: dict[str, object] = {
            **asdict(place),
            "device": device_of(hardware, place.local_rank),
            "backend": self._choice.backend,
            "rank": rank,
            "world_size": len(gang),
            "epoch": 0,
            "engine": self._choice.engine,
            **meeting.params(gang[rank]),
            "size_bytes": SIZE_BYTES,
        }
        order = self._calls.order(self._check, f"sync-{rank}", "check_sync", {})
        return replace(order, params=params)


def _row(machines: Machines, node: NodeId, rank: int | None, choice: EngineChoice) -> Row:
    return {
        "node": node,
        "name": machines.names().get(node, node),
        "rank": rank,
        "device": None,
        "engine": choice.label,
        "result": "",
        "time_ms": None,
        "mbit_per_s": None,
        "note": "",
    }


def _answered(row: Row, rank: asyncio.Future[WorkResult]) -> Row:
    if rank.cancelled():
        return row | {"result": "failed", "note": "another rank failed"}
    if (error := rank.exception()) is not None:
        known = error if isinstance(error, JupiterError) else WorkFailedError(str(error))
        return _failed(row, known)
    result = rank.result()
    is_right = bool(result.counts.get("is_right"))
    return row | {
        "result": "ok" if is_right else "wrong",
        "device": str(result.summary.get("device", "")),
        "time_ms": round(result.counts["time_ms"], 3),
        "mbit_per_s": round(result.counts["mbit_per_s"], 1) or None,
        "note": "" if is_right else "the sum isn't what the ranks had",
    }


def _failed(row: Row, error: JupiterError) -> Row:
    is_away = isinstance(error, PeerUnreachableError | BadRouteError | TimedOutError)
    return row | {"result": "unreachable" if is_away else "failed", "note": error.message}
