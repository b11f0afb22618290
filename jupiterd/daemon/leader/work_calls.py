"""What a leader asks executors to do: to run an order, and to begin, stop or end a gang.

Owns what follows where a node can't be asked. Doesn't choose the nodes, and knows no cycle.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import aclosing
from dataclasses import dataclass

from jupiterd.daemon.executor.dispatcher import Dispatcher
from jupiterd.daemon.leader.machines import Machines
from jupiterd.daemon.leader.placement import Placement
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.runtime.work_events import CheckpointStored, SaveRequest, WorkEvent, WorkOrder
from jupiterd.errors import DiskFullError, JupiterError, PeerUnreachableError, StateDirError
from jupiterd.ids import CycleId, NodeId, short
from jupiterd.rpc import peer_pb2

log = logging.getLogger(__name__)


@dataclass
class WorkCalls:
    """The calls of one term."""

    term: Term
    machines: Machines
    placement: Placement
    dispatcher: Dispatcher

    def order(
        self, cycle: CycleId, item: str, task: str, params: Mapping[str, object]
    ) -> WorkOrder:
        """Return an order of this term without inputs."""
        return WorkOrder(f"{cycle[:8]}/{item}", self.term.number, task, params, {})

    async def run(self, node: NodeId, order: WorkOrder) -> AsyncGenerator[WorkEvent]:
        """Run an order on a node; a broken stream or a full disk lets it be passed over a while."""
        with self.placement.occupied(node):
            try:
                with self.term.named(node):
                    async with aclosing(self.dispatcher.run(node, order)) as events:
                        async for event in events:
                            yield event
            except PeerUnreachableError:
                self.machines.pass_over(node)
                raise
            except (DiskFullError, StateDirError):
                self.placement.note_no_room(node)
                raise

    async def prepare(self, node: NodeId, request: peer_pb2.PrepareRanksRequest) -> tuple[int, str]:
        """Ask a node whether ranks may run there; see `Dispatcher.prepare`."""
        return await self.dispatcher.prepare(node, request)

    async def stop_after_step(self, node: NodeId, attempt: int) -> None:
        """Let a gang end after its running step; its first rank's node is told.

        Raises:
            JupiterError: it can't be told.
        """
        await self.dispatcher.stop_after_step(node, self.term.number, attempt)

    async def end_gang(
        self,
        gang: Sequence[NodeId],
        attempt: int,
        save: SaveRequest | None = None,
        silent: AbstractSet[NodeId] = frozenset(),
    ) -> list[tuple[NodeId, CheckpointStored]]:
        """End a gang wherever it runs, and return who has kept what of it.

        A node that can't be asked, or is known to be silent, ends its part by itself before long.
        """
        self.term.check_awake()
        if self.term.is_over:
            return []
        nodes = sorted((set(gang) & self.machines.answering()) - silent)
        kept = await asyncio.gather(*(self._end(node, attempt, save) for node in nodes))
        found = [(node, made) for node, made in zip(nodes, kept, strict=True) if made is not None]
        if save is not None:
            steps = {short(node): made.progress.step for node, made in found}
            asked = ",".join(map(short, nodes))
            log.info("states_kept", extra={"attempt": attempt, "asked": asked, "steps": steps})
        return found

    async def _end(
        self, node: NodeId, attempt: int, save: SaveRequest | None
    ) -> CheckpointStored | None:
        try:
            return await self.dispatcher.end(node, self.term.number, attempt, save)
        except JupiterError as error:
            extra = {"node": short(node), "attempt": attempt, "reason": error.message}
            log.warning("attempt_not_ended", extra=extra)
            return None
