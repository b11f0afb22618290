"""Runs orders on this node, and keeps a gang's ranks running while leaders change.

Owns which ranks of gangs run here, and when they end: when a leader ends them, when another
gang is accepted, or when no leader has followed them for GRACE_S. Other work ends with its stream.
Doesn't know how work is done (`worker_runner`), nor what a piece of it has said (`rank_worker`).
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from collections.abc import Set as AbstractSet
from contextlib import aclosing
from dataclasses import replace
from typing import Protocol

from jupiterd.daemon.executor.rank_worker import RankWorker
from jupiterd.daemon.membership.fencing import Fencing
from jupiterd.daemon.runtime.work_events import (
    CheckpointStored,
    LocalWorkEvent,
    SaveRequest,
    StateStored,
    WorkEvent,
    WorkOrder,
)
from jupiterd.errors import (
    ConflictError,
    JupiterError,
    NotFoundError,
    PeerUnreachableError,
    RefusedError,
    from_wire,
)
from jupiterd.ids import NodeId
from jupiterd.protocol.frames import RankStuck
from jupiterd.rpc import peer_pb2

log = logging.getLogger(__name__)

GRACE_S = 15.0
"""How long a gang's worker goes on without a leader that follows it.

Where the old leader is silent, an election takes up to 5.3 s, uniting the ledgers 2 s, recording
roles 1 s and attaching 3 s; the rest is for machines that are busy training.
"""

LEAVING = "it is being stopped"


class Workers(Protocol):
    """Where orders are done."""

    async def prepare(self, request: peer_pb2.PrepareRanksRequest) -> peer_pb2.PrepareRanksReply:
        """Say whether a gang's ranks may run here just now."""
        ...

    def run(self, order: WorkOrder) -> AsyncGenerator[LocalWorkEvent]:
        """Do the work, and yield what its worker says; closing the iterator ends the worker."""
        ...

    def save_state(self, order_id: str, after_step: int) -> bool:
        """Ask a worker for its last finished step, if later than that; is there one to ask?"""
        ...

    def ask_to_stop(self, order_id: str, reason: str) -> bool:
        """Ask a worker to stop after its running step; is there one to ask?"""
        ...


class OrderExecutor:
    """Carries out orders of other nodes and of this one, and supervises the ranks of gangs."""

    def __init__(
        self,
        workers: Workers,
        fencing: Fencing,
        group: asyncio.TaskGroup,
        grace_s: float = GRACE_S,
    ) -> None:
        self._workers = workers
        self._fencing = fencing
        self._group = group
        self._grace_s = grace_s
        self._changing = asyncio.Lock()
        self._workers_by_order: dict[str, RankWorker] = {}
        self._ended = (0, 0)
        """The last (term, attempt) that a leader ended; its orders may arrive after the end."""
        self._last_stored: tuple[int, CheckpointStored] | None = None
        """The last attempt of which a step was saved, and that step's checkpoint."""
        self._is_leaving = False
        """Nothing begins here any more."""

    @property
    def has_gang(self) -> bool:
        """Say whether ranks of a gang run here."""
        return bool(self._workers_by_order)

    async def run(self, leader: NodeId, order: WorkOrder) -> AsyncGenerator[WorkEvent]:
        """Yield the events of the work, `Finished` last; closing the iterator leaves or ends it.

        Raises:
            JupiterError: whatever the worker said, or the order is outdated.
        """
        if self._is_leaving and not order.is_attach:
            raise PeerUnreachableError(LEAVING)
        order = replace(order, ordered_by=leader)
        if order.attempt:
            work = (await self._worker_for(leader, order)).follow()
        else:
            await self._fencing.check(leader, order.term, order.attempt)
            work = _shared_events(self._workers.run(order))
        async with aclosing(work) as events:
            async for event in events:
                yield event

    async def end(
        self, leader: NodeId, term: int, attempt: int, save: SaveRequest | None = None
    ) -> CheckpointStored | None:
        """End the work of an attempt; return when none of it runs any more.

        With `save`, the last step that its ranks here have finished is saved and returned; again to
        the next leader, for the one before may have gone without recording it.

        Raises:
            RefusedError: another leader was accepted in this term, or a later one.
        """
        async with self._changing:
            await self._fencing.check(leader, term, 0)
            self._ended = max(self._ended, (term, attempt))
            ended = [
                worker
                for worker in self._workers_by_order.values()
                if worker.order.attempt == attempt
            ]
            stored = await self._last_step_of(attempt, ended, save) if save is not None else None
            await self._end(ended, RefusedError(f"attempt {attempt} was ended here"))
        return stored

    async def prepare(self, request: peer_pb2.PrepareRanksRequest) -> peer_pb2.PrepareRanksReply:
        """Say whether a gang's ranks may run here just now; nothing is reserved for them."""
        if self._is_leaving:
            failure = peer_pb2.Failure(code=PeerUnreachableError.code, message=LEAVING)
            return peer_pb2.PrepareRanksReply(failure=failure)
        return await self._workers.prepare(request)

    async def stop_after_step(self, leader: NodeId, term: int, attempt: int) -> None:
        """Ask the ranks of an attempt to stop together after their running step.

        Raises:
            RefusedError: another leader was accepted in this term, or a later one.
            NotFoundError: none of them runs here just now.
        """
        await self._fencing.check(leader, term, 0)
        orders = [work.order for work in self._workers_by_order.values()]
        ranks = [order.id for order in orders if order.attempt == attempt]
        accepted = [self._workers.ask_to_stop(rank, "the gang is formed anew") for rank in ranks]
        if not any(accepted):
            raise NotFoundError(f"no rank of attempt {attempt} runs here just now")

    def finish_steps(self) -> list[RankWorker]:
        """Begin nothing more, and have the ranks here stop after their running step and save it.

        Their gangs stop with them, wherever they run. Returned are those of which there is
        something to save; they end when their leader has recorded it.
        """
        self._is_leaving = True
        training = [worker for worker in self._workers_by_order.values() if worker.has_stepped]
        return [h for h in training if self._workers.ask_to_stop(h.order.id, LEAVING)]

    async def end_closed(self, closed: AbstractSet[tuple[str, int]]) -> None:
        """End the ranks here of attempts (cycle, number) that are closed in the ledger.

        A rank with a follower only fails: its leader asks for its last step, and then ends it.
        """
        left = [
            w for w in self._workers_by_order.values() if (w.order.cycle, w.order.attempt) in closed
        ]
        why = RefusedError("its attempt has been closed")
        for worker in left:
            worker.fail(why)
        await self._end([worker for worker in left if not worker.is_followed], why)

    async def end_all(self, why: JupiterError) -> None:
        """End all ranks of gangs here."""
        await self._end(list(self._workers_by_order.values()), why)

    async def _worker_for(self, leader: NodeId, order: WorkOrder) -> RankWorker:
        """Return the worker of an order, after ending what an outranked gang left here."""
        async with self._changing:
            await self._fencing.check(leader, order.term, order.attempt)
            outdated = [
                worker for worker in self._workers_by_order.values() if worker.is_outdated_by(order)
            ]
            await self._end(outdated, RefusedError(f"attempt {order.attempt} has begun here"))
            return self._attach(order) if order.is_attach else self._begin(order)

    def _attach(self, order: WorkOrder) -> RankWorker:
        worker = self._workers_by_order.get(order.id)
        if worker is None:
            raise NotFoundError(f"nothing runs here as {order.id}")
        if worker.is_followed and order.term <= worker.term:
            raise RefusedError(f"a leader of term {worker.term} follows {order.id}")
        log.info("work_adopted", extra={"order": order.id, "term": order.term})
        worker.term = order.term
        return worker

    def _begin(self, order: WorkOrder) -> RankWorker:
        if (order.term, order.attempt) <= self._ended:
            raise RefusedError(f"attempt {order.attempt} has been ended")
        if order.id in self._workers_by_order:
            raise ConflictError(f"{order.id} runs here already")
        if self._last_stored is not None and self._last_stored[0] == order.attempt:
            self._last_stored = None  # of another cycle, or of a group that counted like this one
        worker = self._workers_by_order[order.id] = RankWorker(
            order, self._grace_s, self._workers.save_state
        )
        worker.task = self._group.create_task(
            worker.work(self._workers.run(order)), name=f"held {order.id}"
        )
        worker.task.add_done_callback(lambda _: self._forget(worker))
        return worker

    def _forget(self, worker: RankWorker) -> None:
        del self._workers_by_order[worker.order.id]
        worker.close()

    async def _last_step_of(
        self, attempt: int, works: list[RankWorker], save: SaveRequest
    ) -> CheckpointStored | None:
        found = await asyncio.gather(*(worker.last_step(save) for worker in works))
        stored = [each for each in found if each is not None]
        if self._last_stored is not None and self._last_stored[0] == attempt:
            stored.append(self._last_stored[1])
        best = max(stored, key=lambda each: each.progress.step, default=None)
        if best is None or best.progress.step <= save.after_step:
            return None
        self._last_stored = attempt, best
        return best

    async def _end(self, works: list[RankWorker], why: JupiterError) -> None:
        if works:
            await asyncio.gather(*(worker.end(why) for worker in works))


async def _shared_events(said: AsyncGenerator[LocalWorkEvent]) -> AsyncGenerator[WorkEvent]:
    """Yield the events for others of work that belongs to no gang; raises a rank's error."""
    async with aclosing(said) as events:
        async for event in events:
            if isinstance(event, RankStuck):
                raise from_wire(event.code, event.message, event.hint)
            if not isinstance(event, StateStored):
                yield event
