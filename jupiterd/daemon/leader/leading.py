"""What a leader's shells share: the term they act in, and the ways to record, place and run.

Owns the view of who can be given work. Doesn't know cycles or phases.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Collection, Generator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from shlex import quote

from jupiterd.cluster.facts.facts import ClusterFounded, CycleStarted, Fact
from jupiterd.cluster.ledger.state import CycleState
from jupiterd.cluster.ledger.tokens import TokenTimer
from jupiterd.cluster.membership.admission_policy import shut_with
from jupiterd.cluster.membership.pairing_window import PairingWindow
from jupiterd.cluster.membership.pending_joins import PendingJoins
from jupiterd.cluster.planning.placement import Seat, choose
from jupiterd.cluster.planning.roles import drained, pinned_trainers
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
from jupiterd.daemon.executor.dispatcher import Dispatcher
from jupiterd.daemon.executor.preflight_listener import PreflightListener
from jupiterd.daemon.leader.progress_board import ProgressBoard
from jupiterd.daemon.leader.pseudo_gradients import PseudoGradients
from jupiterd.daemon.leader.replication import keep_two_copies
from jupiterd.daemon.ledger.anti_entropy import AntiEntropy
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.links.peers import Peers
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.work_events import CheckpointMade, KeepWish, WorkEvent, WorkOrder
from jupiterd.errors import (
    DiskFullError,
    DrainedError,
    JupiterError,
    MissingExtraError,
    NoLeaderError,
    PeerUnreachableError,
    StateDirError,
)
from jupiterd.ids import ArtifactId, CycleId, NodeId, short
from jupiterd.net.interfaces import source_address_toward
from jupiterd.versions import Kinship, kinship

log = logging.getLogger(__name__)

TROUBLE_S = 5.0
"""How long a node whose stream broke is passed over: membership needs about as long to judge."""

FOUNDING_S = 2.0
"""How long whoever wants to record something waits for a new leader to found its cluster."""

NO_ROOM_S = 30.0
"""How long a node whose disk is full is passed over, as long as another one has room."""


def name_of(leading: "Leading", node: NodeId) -> str:
    """Return the name that people see, even of a member that was just removed."""
    return leading.names().get(node, short(node))


@dataclass
class Leading:
    """One term of leading; made anew for each, so that nothing outlives it."""

    term: int
    self_id: NodeId
    journal: Replica
    dispatcher: Dispatcher
    library: ArtifactCache
    peers: Peers
    board: ProgressBoard
    probes: PreflightListener
    alive: Callable[[], frozenset[NodeId]]
    answering: Callable[[], frozenset[NodeId]]
    """Those of them that were heard just now: for no other one does anybody wait."""
    hardware_of: Callable[[NodeId], Hardware | None]
    exchange: AntiEntropy
    waiting: PendingJoins
    """Who wants to be let in; it ends with the term."""
    check_awake: Callable[[], None]
    """Ends the term at once where this machine has slept: others may lead by now."""
    written_roles: Callable[[], Mapping[NodeId, str]]
    """Those in the cluster file of this machine; a command, whenever it was given, counts more."""
    _running: dict[NodeId, int] = field(default_factory=dict[NodeId, int])
    _no_room_until_s: dict[NodeId, float] = field(default_factory=dict[NodeId, float])
    window: PairingWindow = field(default_factory=PairingWindow)
    """How long the door has been open by this leader's clock."""
    token_timer: TokenTimer = field(default_factory=TokenTimer)
    """How long tokens have been in force by this leader's clock."""
    damaged: set[str] = field(default_factory=set[str])
    """Checkpoints from which no gang could go on."""
    ways: PseudoGradients = field(default_factory=PseudoGradients)
    """What the gangs of islands have told."""
    _planned: dict[CycleId, int] = field(default_factory=dict[CycleId, int])
    """The last epoch number that was given to each cycle, recorded or not."""
    is_over: bool = False

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
            shut = shut_with(self.journal.state, self.self_id, facts)
            entry = await self.journal.append(self.term, (*facts, *shut))
        copies = await self.exchange.spread(entry)
        if copies == 1 and len(self.alive()) > 1:
            log.warning("entry_has_one_copy", extra={"entry": short(entry.hash)})

    async def _until_founded(self) -> None:
        """Wait for the first entry of this node's own cluster; nothing before it would count."""
        try:
            async with asyncio.timeout(FOUNDING_S):
                while len(self.journal.ledger) == 0:
                    await self.journal.changed_since(self.journal.version)
        except TimeoutError:
            why = f": {self.journal.trouble}" if self.journal.trouble else ""
            raise NoLeaderError(f"this node's cluster is yet to be founded{why}") from None

    def next_epoch(self, cycle: CycleId) -> int:
        """Return an epoch number that no gang of any cycle has had: nodes obey rising ones only.

        Nor has it been given to another cycle, whose gang may be planned at the same moment.
        """
        recorded = (each.next_epoch for each in self.journal.state.cycles.values())
        given = (number + 1 for other, number in self._planned.items() if other != cycle)
        self._planned[cycle] = max([1, *recorded, *given])
        return self._planned[cycle]

    def cycle(self, cycle: CycleId) -> CycleState:
        """Return what the ledger says of a cycle."""
        return self.journal.state.cycles[cycle]

    def purged(self, started: CycleStarted) -> frozenset[str]:
        """Return the sources of which a cycle uses nothing any more."""
        return self.journal.state.purged(started.domain, started.cycle)

    def names(self) -> dict[NodeId, str]:
        """Return the members with the names that people see."""
        return {
            node: peer.name if (peer := self.peers.get(node)) and peer.name else fact.name
            for node, fact in self.journal.state.members.items()
        }

    def program_of(self, node: NodeId) -> str:
        """Return a member's version of Jupiter; empty where it hasn't told."""
        hardware = self.hardware_of(node)
        return "" if hardware is None else hardware.program

    def is_alike(self, node: NodeId) -> bool:
        """Say whether a member's version is so much like ours that it may be given work."""
        return kinship(self.program_of(node), self.program_of(self.self_id)) is Kinship.ALIKE

    def well_nodes(self) -> list[NodeId]:
        """Return members that answer and aren't in trouble, in the order of their ids."""
        return sorted(node for node in self.answering() if not self._is_troubled(node))

    def fit_nodes(self) -> list[NodeId]:
        """Return those of them that may be given work: no work crosses versions."""
        return [node for node in self.well_nodes() if self.is_alike(node)]

    def drained(self) -> frozenset[NodeId]:
        """Return who is to do nothing because people said so."""
        pins = {node: pin.role for node, pin in self.journal.state.pins.items()}
        return drained(pins, self.written_roles())

    def pinned_trainers(self) -> frozenset[NodeId]:
        """Return who is to train because people said so, however slow it is."""
        pins = {node: pin.role for node, pin in self.journal.state.pins.items()}
        return pinned_trainers(pins, self.written_roles())

    def fit_workers(self) -> list[NodeId]:
        """Return the fit nodes that nobody has drained."""
        without = self.drained()
        return [node for node in self.fit_nodes() if node not in without]

    def check_not_drained(
        self, what: str, among: Collection[NodeId] = (), *, needs_engine: bool = True
    ) -> None:
        """Raise DrainedError where somebody who could do it (of these, or of all) is drained."""
        drained = self.drained()
        able = [node for node in self.fit_nodes() if not among or node in among]
        idle = [n for n in able if n in drained and (self._has_engine(n) or not needs_engine)]
        if idle:
            names = sorted(name_of(self, node) for node in idle)
            are = f"{', '.join(names)} {'are' if len(names) > 1 else 'is'} drained"
            resume = f"jupiterctl node resume {quote(names[0])}"
            told = f"{are}, and nobody else {what}; to let it go on: {resume}"
            raise DrainedError(told, resume)

    def seats(self) -> Sequence[Seat]:
        """Return who may be given work just now; whoever lacks room only where nobody has any."""
        roles = self.journal.state.roles
        fit = self.fit_workers()
        roomy = [node for node in fit if now_s() >= self._no_room_until_s.get(node, 0.0)]
        return [
            Seat(
                node,
                roles[node].role if node in roles else "idle",
                self._has_engine(node),
                self._running.get(node, 0),
            )
            for node in roomy or fit
        ]

    def _has_engine(self, node: NodeId) -> bool:
        hardware = self.hardware_of(node)
        return hardware is not None and bool(hardware.engines)

    def is_busy(self, node: NodeId) -> bool:
        """Say whether a node does any work of ours."""
        return self._running.get(node, 0) > 0

    def place(self, *, needs_engine: bool, without: frozenset[NodeId] = frozenset()) -> NodeId:
        """Return who does one more piece of work; raises PeerUnreachableError where nobody can."""
        seats = [seat for seat in self.seats() if seat.node not in without]
        node, reason = choose(seats, needs_engine=needs_engine)
        if node is None:
            self.check_not_drained("can do it", needs_engine=needs_engine)
            hint = f"on one of the machines: {MissingExtraError.default_hint}"
            raise PeerUnreachableError(reason, hint)
        return node

    async def run(self, node: NodeId, order: WorkOrder) -> AsyncGenerator[WorkEvent]:
        """Run an order on a node; a broken stream or a full disk lets it be passed over a while."""
        self._running[node] = self._running.get(node, 0) + 1
        try:
            with self.named(node):
                async with aclosing(self.dispatcher.run(node, order)) as events:
                    async for event in events:
                        yield event
        except PeerUnreachableError:
            self.pass_over(node)
            raise
        except (DiskFullError, StateDirError):
            self._no_room_until_s[node] = now_s() + NO_ROOM_S
            raise
        finally:
            self._running[node] -= 1

    async def end_gang(
        self,
        gang: Sequence[NodeId],
        epoch: int,
        wish: KeepWish | None = None,
        silent: AbstractSet[NodeId] = frozenset(),
    ) -> list[tuple[NodeId, CheckpointMade]]:
        """End a gang wherever it runs, and return who has kept what of it.

        A node that can't be asked, or is known to be silent, ends its part by itself before long.
        """
        self.check_awake()
        if self.is_over:
            return []
        nodes = sorted((set(gang) & self.answering()) - silent)
        kept = await asyncio.gather(*(self._end(node, epoch, wish) for node in nodes))
        found = [(node, made) for node, made in zip(nodes, kept, strict=True) if made is not None]
        if wish is not None:
            steps = {short(node): made.step for node, made in found}
            asked = ",".join(map(short, nodes))
            log.info("states_kept", extra={"epoch": epoch, "asked": asked, "steps": steps})
        return found

    async def _end(self, node: NodeId, epoch: int, wish: KeepWish | None) -> CheckpointMade | None:
        try:
            return await self.dispatcher.end(node, self.term, epoch, wish)
        except JupiterError as error:
            extra = {"node": short(node), "epoch": epoch, "reason": error.message}
            log.warning("epoch_not_ended", extra=extra)
            return None

    def host_of(self, node: NodeId, *, seen_from: NodeId) -> str:
        """Return the host of a member; our own is the address that leads to the asker."""
        if node != self.self_id:
            return self.peers.require(node).shared_host
        return source_address_toward(self.peers.require(seen_from).shared_host)[0]

    def order(
        self, cycle: CycleId, item: str, task: str, params: Mapping[str, object]
    ) -> WorkOrder:
        """Return an order of this term without inputs."""
        return WorkOrder(f"{cycle[:8]}/{item}", self.term, task, params, {})

    @contextmanager
    def named(self, node: NodeId) -> Generator[None, None, None]:
        """Put a node's name before the message of an error that is about that machine."""
        try:
            yield
        except JupiterError as error:
            member = self.journal.state.members.get(node)
            if member is None or not error.is_of_one_machine:
                raise
            raise type(error)(f"{member.name}: {error.message}", error.hint) from error

    async def fetch(self, artifact: ArtifactId) -> None:
        """Bring an artifact to this node, unless it is here; errors name this node."""
        with self.named(self.self_id):
            await self.library.ensure(artifact)

    async def is_in_reach(self, artifact: str) -> bool:
        """Say whether this node holds an artifact, or one that says so at once."""
        wanted = ArtifactId(artifact)
        if self.library.store.holds(wanted):
            return True
        others = self.answering() - {self.self_id}
        return True in await asyncio.gather(
            *(self.library.is_held_by(node, wanted) for node in others)
        )

    async def keep_two_copies(self, artifact: ArtifactId, holder: NodeId) -> None:
        """See that two nodes have what was just made, where another has room."""
        await keep_two_copies(self, artifact, holder)

    def _is_troubled(self, node: NodeId) -> bool:
        peer = self.peers.get(node)
        return node != self.self_id and (peer is None or now_s() - peer.troubled_s < TROUBLE_S)

    def pass_over(self, node: NodeId) -> None:
        """Give a node no work for a while: it doesn't answer just now."""
        peer = self.peers.get(node)
        if peer is not None:
            peer.troubled_s = now_s()
