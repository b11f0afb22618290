"""Having one item of a phase done: by somebody who can, again where it fails, kept on two nodes.

Owns the choice of the node, the retries and the second copy. Doesn't know phases, or what follows
from a result: whoever asked records it.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from jupiterd.cluster.facts.facts import WorkCompleted
from jupiterd.cluster.planning.asking_node import ASKED_AT, asking_node
from jupiterd.cycle.base.work_item import WorkItem, WorkResult
from jupiterd.cycle.data.local_paths import local_paths
from jupiterd.cycle.phases.judge import ASKING
from jupiterd.daemon.leader.item_failures import ItemFailures
from jupiterd.daemon.leader.progress_board import ProgressBoard
from jupiterd.daemon.leader.retry_policy import RetryPolicy
from jupiterd.daemon.leader.term_services import WorkServices
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.work_events import Finished, Started
from jupiterd.errors import (
    DeviceBusyError,
    DrainedError,
    EmptySourceError,
    JupiterError,
    NotFoundError,
    NotOfferedError,
    PeerUnreachableError,
    SourceUnreachableError,
    TooLittleTextError,
    WorkFailedError,
)
from jupiterd.ids import CycleId, NodeId
from jupiterd.protocol.frames import Preparing, Progressed

log = logging.getLogger(__name__)

MAX_FAILURES = 3
"""An item whose worker fails this often ends the cycle: it would fail for ever."""

RETRY_S = 1.0

SOURCE_RETRY_S = 10.0
"""The internet may come back: an item that needs it is tried again after a pause."""


BUSY_RETRY_S = 5.0
"""Seconds until the next try if a gang holds the GPU, which it does for minutes or hours."""

MEMORY_RETRY_S = 30.0
"""Seconds until the next try after a lack of memory: another program may free some."""

MAX_BUSY_LOOKS = 120
"""How often the last try waits for other work on the node; then it runs beside that work."""


@dataclass(frozen=True)
class Patience:
    """When to give up on a source or server that can't be reached: at the first limit reached."""

    tries: int
    elapsed_s: float
    """Seconds since the first failure after the last progress. One try of a silent server takes
    minutes."""

    def is_over(self, tries: int, elapsed_s: float) -> bool:
        """Return whether to give up."""
        return tries >= self.tries or elapsed_s >= self.elapsed_s


NEEDED = Patience(30, 1800.0)
"""For work that the round can't go on without."""

SPARED = Patience(6, 120.0)
"""For a source that the round can do without: there is other text."""

GENERATING = "generate"
"""The task by which a model writes."""

MAY_ASK_A_SERVER = frozenset({GENERATING, ASKING})
"""Tasks that may be done by asking a server, in place of a model here."""

TRAINING_ALONE = "train_proxy"
"""The task that trains a small student on one node."""

NEEDS_NO_ENGINE = frozenset({"collect", "clean", "hold_out", "unite", "gate", "choose_proxy_text"})
"""Tasks whose workers import no machine learning library."""


def is_asked_elsewhere(item: WorkItem) -> bool:
    """Say whether a server does what the item asks for; any node can talk to one."""
    return item.task in MAY_ASK_A_SERVER and "model" not in item.inputs


def needs_engine(item: WorkItem) -> bool:
    """Say whether only a node with a machine learning library can do it."""
    return item.task not in NEEDS_NO_ENGINE and not is_asked_elsewhere(item)


@dataclass
class _Tries:
    """What the tries of one item have shown so far."""

    memory: ItemFailures
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    failures: int = 0
    """Those that are of the item's own making."""
    without: frozenset[NodeId] = frozenset()
    """Nodes that the next try passes over, where another can do it."""
    empty: list[EmptySourceError] = field(default_factory=list[EmptySourceError])
    """What nodes without the folder said."""

    def is_out_of_reach(self, patience: Patience) -> bool:
        """Count a source that couldn't be reached; return whether to give up."""
        elapsed_s = self.policy.fail(now_s())
        self.policy.unreachable += 1
        return patience.is_over(self.policy.unreachable, elapsed_s)

    def is_final(
        self, node: NodeId | None, error: JupiterError, able: Collection[NodeId], longest_s: float
    ) -> bool:
        """Count a failure; return whether no other try can help.

        Args:
            node: where it failed; None where no node could be chosen.
            error: how.
            able: the nodes that can do it.
            longest_s: so long it is tried since it last got on.
        """
        is_other = self.memory.learn(node, error, able)
        self.failures += not (error.may_mend or is_other)
        is_over = (
            self.policy.fail(now_s()) >= longest_s
            or self.failures >= MAX_FAILURES
            or self.memory.is_repeated(node, error, is_other=is_other)
        )
        return is_over or (error.is_permanent and not is_other)


class ItemRunner:
    """Runs the items of one cycle or run for one term."""

    def __init__(self, services: WorkServices, cycle: CycleId) -> None:
        """Take what items are run with, and the cycle or run that they belong to."""
        self._services, self._cycle = services, cycle
        self._term, self._board = services.term, services.board
        self._placement, self._reach = services.placement, services.reach
        self._calls = services.calls

    def showing_on(self, board: ProgressBoard) -> "ItemRunner":
        """Return a runner of the same cycle that shows its progress elsewhere."""
        return ItemRunner(replace(self._services, board=board), self._cycle)

    async def run(
        self,
        round_number: int,
        item: WorkItem,
        only_on: str = "",
        check: Callable[[], None] = lambda: None,
        is_needed: Callable[[], bool] = lambda: True,
        longest_s: float = math.inf,
    ) -> WorkCompleted:
        """Return what came of it, not recorded yet.

        Args:
            round_number: the round that it belongs to.
            item: what is to be done.
            only_on: the one node that can; empty for any.
            check: called before another try; raises where the item is wanted no more.
            is_needed: says whether nothing goes on without it, where it can't be reached.
            longest_s: so long it is tried since it last got on, whatever is in the way.

        Raises:
            JupiterError: trying again can't help.
        """
        tries = _Tries(ItemFailures(item))
        while True:
            node: NodeId | None = None
            tries.policy.begin(now_s())
            try:
                node = (
                    self._named(only_on)
                    if only_on
                    else self._place(item, tries.without, tries.memory.too_small)
                )
                return await self._try(round_number, tries.memory.fitted(node), node, tries.policy)
            except EmptySourceError as error:
                self._look_elsewhere(tries, node, error, only_on)
            except SourceUnreachableError as error:
                if tries.is_out_of_reach(NEEDED if is_needed() else SPARED):
                    raise
                await self._pass_on(tries, node, error, SOURCE_RETRY_S)
                check()
            except DeviceBusyError as error:
                await self._pass_on(tries, node, error, BUSY_RETRY_S)
                check()
            except JupiterError as error:
                if tries.is_final(node, error, self._able(item, only_on), longest_s):
                    raise
                if isinstance(error, WorkFailedError):
                    tries.without = self._one_more(tries.without, node)
                log.warning("item_failed", extra={"item": item.id, "reason": error.message})
                await self._pause(node, error.message, tries, check)
                check()

    def _look_elsewhere(
        self, tries: _Tries, node: NodeId | None, error: EmptySourceError, only_on: str
    ) -> None:
        """Leave a node out where a folder is empty or missing: a folder lies on one machine only.

        Raises:
            EmptySourceError: no other node is left to look on.
        """
        tries.empty.append(error)
        tries.without |= {node} if node is not None else frozenset()
        is_tried = tries.without.issuperset(self._placement.fit_workers())
        if only_on or isinstance(error, TooLittleTextError) or is_tried:
            raise _telling(tries.empty) from None

    async def _pass_on(
        self, tries: _Tries, node: NodeId | None, error: JupiterError, pause_s: float
    ) -> None:
        """Leave the next try to another node, if there is one, after a pause."""
        tries.without = self._one_more(tries.without, node)
        await wait_out(self._board, self._cycle, error.message, pause_s)

    async def _pause(
        self,
        node: NodeId | None,
        trouble: str,
        tries: _Tries,
        check: Callable[[], None],
    ) -> None:
        """Wait before another try.

        Who waits for a machine looks often; who fails on one needn't do so each second.
        """
        if node is not None and tries.memory.is_last_try:
            await self._until_alone(node, trouble, check)
        else:
            pause_s = RETRY_S if node is None else tries.policy.pause_s
            await wait_out(self._board, self._cycle, trouble, pause_s)

    async def _until_alone(self, node: NodeId, trouble: str, check: Callable[[], None]) -> None:
        """Give a node a while in which what else runs there may end."""
        await wait_out(self._board, self._cycle, trouble, MEMORY_RETRY_S)
        check()
        for _ in range(MAX_BUSY_LOOKS):
            if not self._placement.is_busy(node):
                return
            detail = f"{trouble}; other work runs there, and is waited for"
            await wait_out(self._board, self._cycle, detail, BUSY_RETRY_S)
            check()

    def _able(self, item: WorkItem, only_on: str) -> Collection[NodeId]:
        """Return the nodes that can do it."""
        if only_on:
            return {NodeId(only_on)}
        fit = self._placement.fit_workers()
        if not needs_engine(item):
            return fit
        return [
            node
            for node in fit
            if (has := self._placement.machines.hardware_of(node)) and has.engines
        ]

    def _one_more(self, without: frozenset[NodeId], node: NodeId | None) -> frozenset[NodeId]:
        """Return who couldn't just now; once that is everybody, each gets another turn."""
        last = frozenset() if node is None else frozenset({node})
        found = without | last
        return last if found.issuperset(self._placement.fit_workers()) else found

    def _named(self, node: str) -> NodeId:
        """Return the node that was named, as soon as it is here."""
        if node not in self._placement.machines.fit_nodes():
            member = self._term.state.members.get(NodeId(node))
            name = node[:8] if member is None else member.name
            raise PeerUnreachableError(
                f"only {name} can do that, and it isn't here", "start jupiterd on that machine"
            )
        self._placement.check_not_drained("can do it", {NodeId(node)}, needs_engine=False)
        return NodeId(node)

    def _place(
        self,
        item: WorkItem,
        without: frozenset[NodeId],
        too_small: frozenset[NodeId] = frozenset(),
    ) -> NodeId:
        """Choose who does it; whoever failed before only where nobody else can.

        Who has too little memory isn't chosen at all: it waits for somebody else.
        A path is looked for first where somebody has named it: nobody else reads it unasked.
        """
        asked_at = self._asked_at(item)
        if asked_at in self._placement.fit_workers() and asked_at not in without | too_small:
            return asked_at
        if item.task == TRAINING_ALONE:
            without |= self._placement.slow_workers()
        needs = needs_engine(item)
        try:
            return self._placement.place(needs_engine=needs, without=without | too_small)
        except PeerUnreachableError:
            if not too_small:
                return self._placement.place(needs_engine=needs)
            return self._larger(too_small, needs_engine=needs)

    def _larger(self, too_small: frozenset[NodeId], *, needs_engine: bool) -> NodeId:
        """Choose among the others; raises PeerUnreachableError where none of them is here."""
        try:
            return self._placement.place(needs_engine=needs_engine, without=too_small)
        except DrainedError:
            raise
        except PeerUnreachableError:
            names = ", ".join(sorted(self._placement.machines.name_of(node) for node in too_small))
            raise PeerUnreachableError(
                f"memory ran out on {names}, and nobody else is here who can do it"
            ) from None

    def _asked_at(self, item: WorkItem) -> NodeId:
        """Return where somebody has named the paths that an item reads; empty where it has none."""
        if not local_paths(item.task, item.params):
            return NodeId("")
        return asking_node(self._term.cycle(self._cycle))

    async def _try(
        self, round_number: int, item: WorkItem, node: NodeId, trying: RetryPolicy
    ) -> WorkCompleted:
        began_s, phase = now_s(), str(item.phase)
        steering = self._term.cycle(self._cycle).steering
        recorded = steering.recorded_id(round_number, phase, item.id)
        asked_at = self._asked_at(item)
        params = {**item.params, **({ASKED_AT: asked_at} if asked_at else {})}
        order = self._calls.order(self._cycle, recorded, item.task, params)
        result = None
        async for event in self._calls.run(node, replace(order, inputs=item.inputs)):
            if isinstance(event, Started):
                self._board.explain(self._cycle, "")
            elif isinstance(event, Progressed):
                trying.advance(event.done)
                self._board.advance(self._cycle, item.id, event, now_s(), node)
            elif isinstance(event, Preparing):
                self._board.prepare_item(self._cycle, event, now_s())
            elif isinstance(event, Finished):
                self._board.complete(self._cycle, item.id)
                result = event.result
        if result is None:
            raise WorkFailedError(f"the {item.task} worker ended without a result")
        await self._keep_two_copies(node, result)
        return WorkCompleted(
            cycle=self._cycle,
            round=round_number,
            phase=phase,
            item=recorded,
            node=node,
            outputs=result.outputs,
            counts=result.counts,
            summary=result.summary,
            elapsed_s=round(now_s() - began_s, 3),
        )

    async def _keep_two_copies(self, maker: NodeId, result: WorkResult) -> None:
        try:
            for artifact in result.outputs.values():
                await self._reach.keep_two_copies(artifact, maker)
        except NotFoundError as error:
            raise PeerUnreachableError(
                f"the maker of a result has gone: {error.message}"
            ) from error


def _telling(errors: Sequence[EmptySourceError]) -> EmptySourceError:
    """Return the one that says most: that a machine doesn't offer a path says least.

    That there is too little text holds on each machine: it ends the item, so it is the last.
    """
    if isinstance(errors[-1], TooLittleTextError):
        return errors[-1]
    return next((each for each in errors if not isinstance(each, NotOfferedError)), errors[0])


async def wait_out(
    board: ProgressBoard, cycle: CycleId, trouble: str, pause_s: float = RETRY_S
) -> None:
    """Let people see what is in the way, and give it a moment to mend."""
    board.explain(cycle, f"{trouble}; trying again")
    await asyncio.sleep(pause_s)
