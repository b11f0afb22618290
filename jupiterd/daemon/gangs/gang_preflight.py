"""Asking the members of a gang, before it is formed, whether their ranks may run there just now.

Owns who is left out for a while, and why. Doesn't know what a member looks at (`device_capacity`),
or how a gang is launched. Members that refuse are done without, as long as anybody is left.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from jupiterd.cluster.planning.rank_placement import CUDA
from jupiterd.cluster.training.asked_partition import memory_limits
from jupiterd.cycle.training.memory import checkpoint_bytes, needs_on
from jupiterd.daemon.gangs.micro_batch_sizes import MicroBatchSizes
from jupiterd.daemon.leader.machines import Machines
from jupiterd.daemon.leader.progress_board import ProgressBoard
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.leader.work_calls import WorkCalls
from jupiterd.daemon.leader.work_item import wait_out
from jupiterd.daemon.planning.gang_plan import GangPlan
from jupiterd.daemon.planning.machine_devices import device_of, limited
from jupiterd.daemon.planning.node_micro_batch import plan_on
from jupiterd.daemon.planning.trained_round import TrainedRound
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.errors import (
    DrainedError,
    JupiterError,
    MemoryMissingError,
    PeerUnreachableError,
)
from jupiterd.ids import NodeId
from jupiterd.rpc import peer_pb2

log = logging.getLogger(__name__)

LEFT_OUT_S = 10.0
"""How long a node that has refused isn't asked again."""

PlanLaunch = Callable[[AbstractSet[NodeId]], GangPlan]
"""Plans an attempt without some nodes."""


@dataclass(frozen=True)
class _Refusal:
    until_s: float
    error: JupiterError


class GangPreflight:
    """The preparation of one round's gangs."""

    def __init__(
        self,
        term: Term,
        board: ProgressBoard,
        machines: Machines,
        calls: WorkCalls,
        trained_round: TrainedRound,
        memory: MicroBatchSizes,
    ) -> None:
        self._term, self._board, self._machines, self._calls = term, board, machines, calls
        self._trained_round = trained_round
        self._memory = memory
        self._refusals: dict[NodeId, _Refusal] = {}

    @property
    def left_out(self) -> frozenset[NodeId]:
        """Return who has refused a moment ago."""
        return frozenset(n for n, refusal in self._refusals.items() if now_s() < refusal.until_s)

    async def prepared_once_resumed(
        self, plan: PlanLaunch, is_over: Callable[[], bool]
    ) -> GangPlan:
        """Return the same; where all who could train are drained, wait until one is resumed.

        Where those who are here can't hold the model together, wait for more.

        Raises:
            JupiterError: nobody who could train has room, or meanwhile it is over.
        """
        logged_reason = ""
        while True:
            try:
                return await self.prepared(plan)
            except (DrainedError, MemoryMissingError) as error:
                if self._term.is_over or is_over():
                    raise
                if error.message != logged_reason:
                    log.info("training_waits", extra={"reason": (logged_reason := error.message)})
                await wait_out(self._board, self._trained_round.cycle, error.message)

    async def prepared(self, plan: PlanLaunch) -> GangPlan:
        """Return a launch whose members all have room for their ranks, with their micro batches.

        Raises:
            JupiterError: nobody who could train has room.
        """
        while True:
            gang_plan = self._planned(plan)
            notes = await self._ask(gang_plan)
            if not self.left_out.intersection(gang_plan.gang):
                reason = "; ".join([gang_plan.choice.reason, *notes, *self._told_of_left_out()])
                choice = replace(gang_plan.choice, reason=reason)
                return replace(gang_plan, choice=choice, micro_batches=self._sizes(gang_plan))

    async def ready(self, gang_plan: GangPlan, newcomers: AbstractSet[NodeId]) -> frozenset[NodeId]:
        """Return who of them may join a gang: it isn't formed anew for one that would refuse.

        Each is asked for all of its devices: nobody knows yet how many ranks it will have. Where
        the model is cut, it is asked for the part that it would hold.

        gang_plan: with all of them
        """
        if gang_plan.partition is not None:
            await self._ask(gang_plan, newcomers)
        else:
            asked = (self._ask_one(gang_plan, n, 0, (n,)) for n in sorted(newcomers))
            await asyncio.gather(*asked)
        return frozenset(newcomers - self.left_out)

    def _sizes(self, gang_plan: GangPlan) -> tuple[int, ...]:
        """Return the sequences that each rank holds at a time."""
        partition, gang = gang_plan.partition, gang_plan.gang
        if partition is None or partition.plan is None:
            return self._memory.of(gang)
        return (partition.plan.micro_batch_sequences,) * len(gang)

    def _planned(self, plan: PlanLaunch) -> GangPlan:
        try:
            return plan(self.left_out)
        except PeerUnreachableError as error:
            refused = [self._refusals[node].error for node in self.left_out]
            if not refused:
                raise
            # As long as one of them may have room some day, the gang waits for that.
            raise min(refused, key=lambda each: each.is_permanent) from error

    async def _ask(self, gang_plan: GangPlan, only: AbstractSet[NodeId] = frozenset()) -> list[str]:
        """Ask each node once; return what is to be said of those that have less room than usual.

        only: whom to ask; empty: everybody
        """
        gang, nodes = gang_plan.gang, list(gang_plan.nodes)
        sharing = self._sharing(nodes)
        asked = (
            self._ask_one(gang_plan, node, gang.count(node), sharing[node])
            for node in nodes
            if not only or node in only
        )
        return [note for note in await asyncio.gather(*asked) if note]

    def _sharing(self, nodes: Sequence[NodeId]) -> dict[NodeId, Sequence[NodeId]]:
        """Return which of them run on the machine of each: they are asked at the same time."""
        machines = {node: self._machines.hardware_of(node) for node in nodes}
        hosts = {node: machine.host if machine else "" for node, machine in machines.items()}
        return {
            node: [other for other in nodes if hosts[other] == host] if host else [node]
            for node, host in hosts.items()
        }

    async def _ask_one(
        self, gang_plan: GangPlan, node: NodeId, ranks: int, sharing: Sequence[NodeId]
    ) -> str:
        """Ask for room for its ranks; sharing: the nodes that take as much of the same memory.

        Where there isn't room for all of these, the first is asked again without the last.
        """
        request = peer_pb2.PrepareRanksRequest(
            engine=gang_plan.choice.engine,
            ranks=ranks,
            needs=self._needs(gang_plan, node, sharing),
            checkpoint_bytes=checkpoint_bytes(
                self._trained_round.shape, self._trained_round.plan.options
            ),
        )
        try:
            with self._term.named(node):
                micro_batch, note = await self._calls.prepare(node, request)
        except JupiterError as error:  # no answer is one too: a driver that hangs holds nobody up
            left_out = sharing[-1] if node == sharing[0] else node
            if isinstance(error, PeerUnreachableError):
                self._machines.pass_over(left_out := node)
            self._refusals[left_out] = _Refusal(now_s() + LEFT_OUT_S, error)
            log.warning("rank_refused", extra={"node": node[:8], "reason": error.message})
            return ""
        self._refusals.pop(node, None)
        if gang_plan.partition is None:
            self._memory.limit(node, micro_batch)
        return f"{self._machines.names().get(node, node[:8])}: {note}" if note else ""

    def _needs(
        self, gang_plan: GangPlan, node: NodeId, sharing: Sequence[NodeId]
    ) -> list[peer_pb2.RankNeed]:
        """Return what each of a node's ranks needs, with its part of what others take there."""
        machine, shape = self._machines.hardware_of(node), self._trained_round.shape
        if machine is None:
            return []
        engine = gang_plan.choice.engine
        device = device_of(engine, machine)
        if gang_plan.partition is not None:
            return _needs_of_parts(gang_plan, node, [node] if device.kind == CUDA else sharing)
        limits = memory_limits(self._term.cycle(self._trained_round.cycle))
        most_bytes = limits.get(node, 0) // max(1, gang_plan.gang.count(node))
        plan = plan_on(engine, machine, shape, self._trained_round.plan, most_bytes)
        self._memory.expect(node, plan.micro_batch_sequences)
        (micro_batch,) = self._memory.of((node,))
        times = 1 if device.kind == CUDA else len(sharing)
        needs = needs_on(limited(device, most_bytes), shape, plan, micro_batch)
        return [peer_pb2.RankNeed(micro_batch=n, size_bytes=times * needed) for n, needed in needs]

    def _told_of_left_out(self) -> list[str]:
        return [f"left out: {self._refusals[node].error.message}" for node in sorted(self.left_out)]


def _needs_of_parts(
    gang_plan: GangPlan, node: NodeId, sharing: Sequence[NodeId]
) -> list[peer_pb2.RankNeed]:
    """Return what each rank of a node needs where each holds a part of the model.

    The largest of its ranks counts for all of them: each may compute on any of its devices. With
    others on its machine, a rank needs its part of what all of them take there.
    """
    cut, gang = gang_plan.partition, gang_plan.gang
    if cut is None or cut.plan is None:
        return []
    of_node = [need for need, owner in zip(cut.needs_bytes, gang, strict=True) if owner == node]
    needed = max(of_node)
    if len(sharing) > 1:
        taken = sum(n for n, owner in zip(cut.needs_bytes, gang, strict=True) if owner in sharing)
        needed = -(-taken // len(of_node))
    micro_batch = cut.plan.micro_batch_sequences
    return [peer_pb2.RankNeed(micro_batch=micro_batch, size_bytes=needed)]
