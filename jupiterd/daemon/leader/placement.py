"""Who does the next piece of work: which machines are free, and which ones people keep out.

Owns what runs where by this leader's word, and who lacks room. Doesn't run anything.
"""

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from shlex import quote

from jupiterd.cluster.planning.placement import Seat, choose
from jupiterd.cluster.planning.roles import drained, pinned_trainers
from jupiterd.daemon.leader.machines import Machines
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.errors import DrainedError, MissingExtraError, PeerUnreachableError
from jupiterd.ids import CycleId, NodeId

NO_ROOM_S = 30.0
"""How long a node whose disk is full is passed over, as long as another one has room."""


@dataclass
class Placement:
    """The seats of one term."""

    machines: Machines
    replica: Replica
    written_roles: Callable[[], Mapping[NodeId, str]]
    """Those in the cluster file of this machine; a command, whenever it was given, counts more."""
    _running: dict[NodeId, int] = field(default_factory=dict[NodeId, int])
    _let_go: dict[CycleId, dict[NodeId, str]] = field(
        default_factory=dict[CycleId, dict[NodeId, str]]
    )
    _no_room_until_s: dict[NodeId, float] = field(default_factory=dict[NodeId, float])

    def let_go(self) -> Mapping[NodeId, str]:
        """Return whom gangs that train go on without, and why: these generate meanwhile."""
        return {node: why for known in self._let_go.values() for node, why in known.items()}

    def show_let_go(self, cycle: CycleId, nodes: Mapping[NodeId, str]) -> None:
        """Keep whom the gang of a cycle goes on without, with the reasons; none: all may train."""
        self._let_go[cycle] = dict(nodes)

    def drained(self) -> frozenset[NodeId]:
        """Return who is to do nothing because people said so."""
        return drained(self._pins(), self.written_roles())

    def pinned_trainers(self) -> frozenset[NodeId]:
        """Return who is to train because people said so, however slow it is."""
        return pinned_trainers(self._pins(), self.written_roles())

    def _pins(self) -> dict[NodeId, str]:
        return {node: pin.role for node, pin in self.replica.state.pins.items()}

    def fit_workers(self) -> list[NodeId]:
        """Return the fit nodes that nobody has drained."""
        without = self.drained()
        return [node for node in self.machines.fit_nodes() if node not in without]

    def slow_workers(self) -> frozenset[NodeId]:
        """Return those without a GPU, where others have one: none of them trains by itself."""
        fit, hardware_of = self.fit_workers(), self.machines.hardware_of
        fast = {node for node in fit if (found := hardware_of(node)) and found.working_gpus}
        return frozenset(fit) - fast if fast else frozenset()

    def check_not_drained(
        self, what: str, among: Collection[NodeId] = (), *, needs_engine: bool = True
    ) -> None:
        """Raise DrainedError where somebody who could do it (of these, or of all) is drained."""
        drained = self.drained()
        able = [node for node in self.machines.fit_nodes() if not among or node in among]
        has_engine = self.machines.has_engine
        idle = [n for n in able if n in drained and (has_engine(n) or not needs_engine)]
        if idle:
            names = sorted(map(self.machines.name_of, idle))
            are = f"{', '.join(names)} {'are' if len(names) > 1 else 'is'} drained"
            resume = f"jupiterctl node resume {quote(names[0])}"
            message = f"{are}, and nobody else {what}; to let it go on: {resume}"
            raise DrainedError(message, resume)

    def seats(self) -> Sequence[Seat]:
        """Return who may be given work just now; whoever lacks room only where nobody has any."""
        roles = self.replica.state.roles
        fit = self.fit_workers()
        roomy = [node for node in fit if now_s() >= self._no_room_until_s.get(node, 0.0)]
        return [
            Seat(
                node,
                roles[node].role if node in roles else "idle",
                self.machines.has_engine(node),
                self._running.get(node, 0),
            )
            for node in roomy or fit
        ]

    def is_busy(self, node: NodeId) -> bool:
        """Say whether a node does any work of ours."""
        return self._running.get(node, 0) > 0

    @contextmanager
    def occupied(self, node: NodeId) -> Generator[None, None, None]:
        """Count one more piece of work on a node, as long as it is done there."""
        self._running[node] = self._running.get(node, 0) + 1
        try:
            yield
        finally:
            self._running[node] -= 1

    def note_no_room(self, node: NodeId) -> None:
        """Prefer others for a while: this one's disk is full."""
        self._no_room_until_s[node] = now_s() + NO_ROOM_S

    def place(self, *, needs_engine: bool, without: frozenset[NodeId] = frozenset()) -> NodeId:
        """Return who does one more piece of work; raises PeerUnreachableError where nobody can."""
        seats = [seat for seat in self.seats() if seat.node not in without]
        node, reason = choose(seats, needs_engine=needs_engine)
        if node is None:
            self.check_not_drained("can do it", needs_engine=needs_engine)
            hint = f"on one of the machines: {MissingExtraError.default_hint}"
            raise PeerUnreachableError(reason, hint)
        return node
