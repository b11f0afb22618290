"""The parts of a term under the names that commands and documents still call them by.

Owns nothing. It goes as soon as the last of them takes the parts that it uses.
"""

from collections.abc import Callable, Collection, Sequence

from jupiterd.cluster.facts.facts import Fact
from jupiterd.cluster.ledger.state import CycleState
from jupiterd.cluster.ledger.tokens import TokenTimer
from jupiterd.cluster.membership.pairing_window import PairingWindow
from jupiterd.cluster.membership.pending_joins import PendingJoins
from jupiterd.cluster.planning.placement import Seat
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.ids import CycleId, NodeId


class Leading(TermServices):
    """All parts at once."""

    @property
    def self_id(self) -> NodeId:
        """Return this node."""
        return self.term.self_id

    @property
    def replica(self) -> Replica:
        """Return the ledger."""
        return self.term.replica

    @property
    def artifact_cache(self) -> ArtifactCache:
        """Return the artifacts of this node."""
        return self.reach.artifact_cache

    @property
    def alive(self) -> Callable[[], frozenset[NodeId]]:
        """Return who answers."""
        return self.machines.alive

    @property
    def hardware_of(self) -> Callable[[NodeId], Hardware | None]:
        """Return what a member has."""
        return self.machines.hardware_of

    @property
    def waiting(self) -> PendingJoins:
        """Return who wants to be let in."""
        return self.admissions.waiting

    @property
    def window(self) -> PairingWindow:
        """Return how long the door has been open."""
        return self.admissions.window

    @property
    def token_timer(self) -> TokenTimer:
        """Return how long tokens have been in force."""
        return self.admissions.token_timer

    async def record(self, *facts: Fact) -> None:
        """See `Term`."""
        await self.term.record(*facts)

    def cycle(self, cycle: CycleId) -> CycleState:
        """See `Term`."""
        return self.term.cycle(cycle)

    def names(self) -> dict[NodeId, str]:
        """See `Machines`."""
        return self.machines.names()

    def check_not_drained(
        self, what: str, among: Collection[NodeId] = (), *, needs_engine: bool = True
    ) -> None:
        """See `Placement`."""
        self.placement.check_not_drained(what, among, needs_engine=needs_engine)

    def seats(self) -> Sequence[Seat]:
        """See `Placement`."""
        return self.placement.seats()

    async def is_in_reach(self, artifact: str) -> bool:
        """See `ArtifactReach`."""
        return await self.reach.is_in_reach(artifact)
