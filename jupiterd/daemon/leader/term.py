"""One term of leading: what is recorded in it, and whether it is over.

Owns the way of facts into the ledger. Doesn't know who works, or what a fact is about.
"""

import asyncio
import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from jupiterd.cluster.facts.facts import ClusterFounded, CycleStarted, Fact
from jupiterd.cluster.ledger.state import CycleState, State
from jupiterd.cluster.membership.admission_policy import shut_with
from jupiterd.daemon.ledger.anti_entropy import AntiEntropy
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.errors import JupiterError, NoLeaderError
from jupiterd.ids import CycleId, NodeId, short

log = logging.getLogger(__name__)

FOUNDING_S = 2.0
"""How long whoever wants to record something waits for a new leader to found its cluster."""


@dataclass
class Term:
    """One term of leading; made anew for each, so that nothing outlives it."""

    number: int
    self_id: NodeId
    replica: Replica
    exchange: AntiEntropy
    alive: Callable[[], frozenset[NodeId]]
    check_awake: Callable[[], None]
    """Ends the term at once where this machine has slept: others may lead by now."""
    _planned: dict[CycleId, int] = field(default_factory=dict[CycleId, int])
    """The last attempt number that was given to each cycle, recorded or not."""
    is_over: bool = False

    @property
    def state(self) -> State:
        """What the ledger says by now."""
        return self.replica.state

    def cycle(self, cycle: CycleId) -> CycleState:
        """Return what the ledger says of a cycle."""
        return self.state.cycles[cycle]

    def purged(self, started: CycleStarted) -> frozenset[str]:
        """Return the sources of which a cycle uses nothing any more."""
        return self.state.purged(started.domain, started.cycle)

    async def record(self, *facts: Fact) -> None:
        """Append facts and send them on; return when a second node has them, where one answers.

        Raises:
            NoLeaderError: the term is over, or its cluster can't be founded.
            DiskFullError: this node has no room for them.
        """
        if not isinstance(facts[0], ClusterFounded):
            await self._until_founded()
        self.check_awake()
        if self.is_over:
            raise NoLeaderError("this node no longer leads")
        with self.named(self.self_id):
            shut = shut_with(self.state, self.self_id, facts)
            entry = await self.replica.append(self.number, (*facts, *shut))
        copies = await self.exchange.spread(entry)
        if copies == 1 and len(self.alive()) > 1:
            log.warning("entry_has_one_copy", extra={"entry": short(entry.hash)})

    async def _until_founded(self) -> None:
        """Wait for the first entry of this node's own cluster; nothing before it would count."""
        try:
            async with asyncio.timeout(FOUNDING_S):
                while len(self.replica.ledger) == 0:
                    await self.replica.changed_since(self.replica.version)
        except TimeoutError:
            why = f": {self.replica.trouble}" if self.replica.trouble else ""
            raise NoLeaderError(f"this node's cluster is yet to be founded{why}") from None

    def next_attempt(self, cycle: CycleId) -> int:
        """Return an attempt number that no gang of any cycle has had: nodes obey rising ones only.

        Nor has it been given to another cycle, whose gang may be planned at the same moment.
        """
        recorded = (each.next_attempt for each in self.state.cycles.values())
        given = (number + 1 for other, number in self._planned.items() if other != cycle)
        self._planned[cycle] = max([1, *recorded, *given])
        return self._planned[cycle]

    @contextmanager
    def named(self, node: NodeId) -> Generator[None, None, None]:
        """Put a node's name before the message of an error that is about that machine."""
        try:
            yield
        except JupiterError as error:
            member = self.state.members.get(node)
            if member is None or not error.is_of_one_machine:
                raise
            raise type(error)(f"{member.name}: {error.message}", error.hint) from error
