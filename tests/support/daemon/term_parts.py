"""Parts of a term of leading for tests: each says what a test told it, and keeps what it was asked.

Owns no daemon: nothing here opens a socket or a file.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import aclosing

from jupiterd.cluster.facts.facts import Fact
from jupiterd.cluster.ledger.cycle_state import CycleFact, CycleState
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.membership.pending_joins import PendingJoins
from jupiterd.cluster.planning.placement import Seat
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
from jupiterd.daemon.executor.preflight_listener import PreflightListener
from jupiterd.daemon.leader.admissions import Admissions
from jupiterd.daemon.leader.artifact_reach import ArtifactReach
from jupiterd.daemon.leader.connectivity import Connectivity
from jupiterd.daemon.leader.machines import Machines
from jupiterd.daemon.leader.placement import Placement
from jupiterd.daemon.leader.progress_board import ProgressBoard
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.daemon.leader.work_calls import WorkCalls
from jupiterd.daemon.links.peers import Peer, Peers
from jupiterd.daemon.runtime.work_events import CheckpointStored, SaveRequest, WorkEvent, WorkOrder
from jupiterd.errors import NoLeaderError
from jupiterd.ids import ArtifactId, ClusterId, CycleId, NodeId

OWN = NodeId("a")


class FakeTerm(Term):
    """A term whose ledger is in memory; what is recorded in it is kept, and counts at once."""

    def __init__(self, self_id: NodeId = OWN, state: State | None = None) -> None:
        self.number, self.self_id, self.is_over = 1, self_id, False
        self.recorded: list[Fact] = []
        self.has_recorded = asyncio.Event()
        self._planned = {}
        self._state = State() if state is None else state

    @property
    def state(self) -> State:
        return self._state

    def know(self, cycle: CycleId, *facts: CycleFact) -> CycleState:
        """Begin with these facts of a cycle."""
        known = self._state.cycles.setdefault(cycle, CycleState())
        for index, fact in enumerate(facts, 1):
            known.apply(fact, (1, self.self_id, "u", index))
        return known

    async def record(self, *facts: Fact) -> None:
        if self.is_over:
            raise NoLeaderError("this node no longer leads")
        self.has_recorded.set()
        for fact in facts:
            self.recorded.append(fact)
            self._state.apply(fact, (2, self.self_id, "v", len(self.recorded)))


class FakeMachines(Machines):
    """Members of which a test says what they have."""

    def __init__(
        self,
        hardware: Mapping[NodeId, Hardware] | None = None,
        names: Mapping[NodeId, str] | None = None,
        answering: Collection[NodeId] = (),
    ) -> None:
        self.self_id = OWN
        self.hardware_of = ({} if hardware is None else hardware).get
        self.alive = self.answering = lambda: frozenset(answering)
        self.passed_over: list[NodeId] = []
        self._names = dict(names or {})

    def names(self) -> dict[NodeId, str]:
        return self._names

    def is_alike(self, node: NodeId) -> bool:
        return True

    def well_nodes(self) -> list[NodeId]:
        return sorted(self.answering())

    def pass_over(self, node: NodeId) -> None:
        self.passed_over.append(node)


class FakePlacement(Placement):
    """These seats, of which nobody is drained."""

    def __init__(self, machines: Machines, seats: Sequence[Seat] = ()) -> None:
        self.machines = machines
        self._seats = seats
        self._running = {}
        self._no_room_until_s = {}
        self._let_go = {}

    def drained(self) -> frozenset[NodeId]:
        return frozenset()

    def pinned_trainers(self) -> frozenset[NodeId]:
        return frozenset()

    def fit_workers(self) -> list[NodeId]:
        return [seat.node for seat in self._seats]

    def seats(self) -> Sequence[Seat]:
        return self._seats


class FakeLibrary(ArtifactCache):
    """A library that has nothing, and spreads at once."""

    def __init__(self) -> None:
        pass

    async def spread(self, _artifacts: object, _nodes: object = ()) -> None:
        pass


class FakeReach(ArtifactReach):
    """Artifacts that are all in reach, but for those that a test takes away."""

    def __init__(self, term: Term | None = None) -> None:
        self.term = FakeTerm() if term is None else term
        self.machines = FakeMachines()
        self.artifact_cache = FakeLibrary()
        self.damaged = set()
        self.out_of_reach: set[str] = set()
        self.copied: list[str] = []
        self.may_copy = asyncio.Event()
        self.may_copy.set()

    async def fetch(self, artifact: ArtifactId) -> None:
        pass

    async def is_in_reach(self, artifact: str) -> bool:
        return artifact not in self.out_of_reach

    async def keep_two_copies(self, artifact: ArtifactId, holder: NodeId) -> None:
        await self.may_copy.wait()
        self.copied.append(artifact)


Run = Callable[[NodeId, WorkOrder], AsyncGenerator[WorkEvent]]


class FakeCalls(WorkCalls):
    """Executors of which a test says what they do."""

    def __init__(self, run: Run | None = None) -> None:
        self.asked: list[tuple[NodeId, WorkOrder]] = []
        self.ended: list[tuple[tuple[NodeId, ...], int]] = []
        self.wishes: list[SaveRequest | None] = []
        self.kept: list[tuple[NodeId, CheckpointStored]] = []
        """What survivors hand over when their epoch is ended."""
        self._work = run

    def order(
        self, cycle: CycleId, item: str, task: str, params: Mapping[str, object]
    ) -> WorkOrder:
        return WorkOrder(f"{cycle[:8]}/{item}", 2, task, params, {})

    async def run(self, node: NodeId, order: WorkOrder) -> AsyncGenerator[WorkEvent]:
        self.asked.append((node, order))
        if self._work is not None:
            async with aclosing(self._work(node, order)) as events:
                async for event in events:
                    yield event

    async def end_gang(
        self,
        gang: Sequence[NodeId],
        attempt: int,
        save: SaveRequest | None = None,
        silent: AbstractSet[NodeId] = frozenset(),
    ) -> list[tuple[NodeId, CheckpointStored]]:
        self.ended.append((tuple(gang), attempt))
        self.wishes.append(save)
        return list(self.kept)


class NoPeers(Peers):
    """Links to nobody."""

    def __init__(self) -> None:
        pass

    def get(self, node: NodeId) -> Peer | None:
        return None

    def __iter__(self) -> Iterator[Peer]:
        return iter(())


class NoProbes(PreflightListener):
    """No listeners."""

    def __init__(self) -> None:
        pass


def connected(peers: Peers | None = None, own: NodeId = OWN) -> Connectivity:
    """Return the ways from a node to these."""
    return Connectivity(own, NoPeers() if peers is None else peers, NoProbes())


def services_of(
    term: Term,
    *,
    machines: Machines | None = None,
    placement: Placement | None = None,
    reach: ArtifactReach | None = None,
    calls: WorkCalls | None = None,
    connectivity: Connectivity | None = None,
) -> TermServices:
    """Return these parts of a term beside others that do nothing."""
    known = (machines or FakeMachines()) if placement is None else placement.machines
    return TermServices(
        term=term,
        board=ProgressBoard(),
        placement=FakePlacement(known) if placement is None else placement,
        reach=FakeReach(term) if reach is None else reach,
        calls=FakeCalls() if calls is None else calls,
        connectivity=connected(own=term.self_id) if connectivity is None else connectivity,
        admissions=Admissions(PendingJoins(ClusterId("c"), term.self_id, 0.0)),
    )
