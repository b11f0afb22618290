"""One run of one node's daemon, from its start to its end.

Imitates `daemon.heartbeat_loop` and `daemon.leadership`: hands `Presence` the clock and the
messages, and does what it asks for, in the order persist, send, act. The journal and the exchange
are beside it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from jupiterd.cluster.facts.facts import Fact
from jupiterd.cluster.ledger.ledger import Entry
from jupiterd.cluster.membership.admission_policy import shut_with
from jupiterd.cluster.membership.pairing_window import PairingWindow
from jupiterd.cluster.membership.presence import (
    AddressRefused,
    AnswerPreVote,
    Beat,
    BecomeLeader,
    Changed,
    Effect,
    HandedOver,
    Input,
    PersistTerm,
    Presence,
    PreVoteAnswered,
    PreVoteRequested,
    Reinstated,
    RequestPreVote,
    Resigned,
    RosterChanged,
    SaidGoodbye,
    StabilityChanged,
    StepDown,
    StorageFailed,
    StorageRecovered,
    TermSeen,
    Ticked,
)
from jupiterd.errors import DiskFullError, RefusedError
from jupiterd.ids import NodeId
from tests.simulation.node.anti_entropy import AntiEntropy, Reply
from tests.simulation.node.calls import call
from tests.simulation.node.fencing import Fencing
from tests.simulation.node.leader_term import LeaderTerm
from tests.simulation.node.members import tend
from tests.simulation.node.replica import Replica
from tests.simulation.node.strangers import Strangers

if TYPE_CHECKING:
    from tests.simulation.node.machine import Machine
    from tests.simulation.world import World

PRE_VOTE_TIMEOUT_S = 1.0
UNCALLED_S = 1.0


class Process:
    """Everything that is lost when the power goes."""

    def __init__(self, world: "World", machine: "Machine") -> None:
        self.world = world
        self.machine = machine
        self.node = machine.node
        self.place = machine.place
        self.replica = Replica(machine.node, machine.disk, lambda: world.fresh_name(16))
        self.clones = self.replica.clones
        self.replica.on_clone = self.fall_silent
        self.anti_entropy = AntiEntropy(self)
        self.fencing = Fencing(self)
        self.strangers = Strangers(self)
        self.member_since: dict[NodeId, float] = {}
        """When it learnt of each member; kept for `witness`."""
        self.leader_term: LeaderTerm | None = None
        self._is_silent = False
        """It leads no more until its end: it stops, or another machine has its key."""
        self.has_trouble = False
        self.content = ("", "")
        """A history and what it adds up to; kept for `checks`."""
        self._called_at: dict[NodeId, float] = {}
        """When each node last called us, by our clock."""
        self._due_s = machine.clock_s()
        term = max(machine.disk.content.term, self.replica.ledger.highest_term())
        timing = world.profile.timing
        self.presence = Presence(self.node, term, machine.clock_s(), world.rng, timing)
        self.replica.known_term = lambda: self.presence.election.term

    @classmethod
    def begin(cls, world: "World", machine: "Machine") -> None:
        """Start a daemon on a machine."""
        process = cls(world, machine)
        machine.process = process
        process.tell(StabilityChanged(machine.stability))
        process.take_up_ledger()
        first_s = world.rng.random() * world.profile.timing.beat_s
        process.wait(first_s, Process.tick)
        process.strangers.keep_greeting()

    # --- what comes in ---

    def wait(self, local_s: float, action: "Callable[[Process], None]") -> None:
        """Do something later, by our own clock."""
        self._due_s = self.machine.clock_s() + local_s if action == Process.tick else self._due_s
        self.machine.after(self, local_s, action)

    def tick(self) -> None:
        """Judge, and beat to everybody."""
        lag_s = max(0.0, self.machine.clock_s() - self._due_s)
        self.check_awake()
        self._save_again()
        self.tell(Ticked(lag_s))
        for node in self.others():
            is_due = self.node < node or self._is_uncalled_by(node)
            if is_due and not self.clones.is_seen:
                self._beat(node)
        tend(self)
        self.world.door.look(self)
        self.wait(self.world.profile.timing.beat_s, Process.tick)

    def _is_uncalled_by(self, node: NodeId) -> bool:
        """Say whether a node that should call us, for its id is the smaller, hasn't for a while."""
        return self.machine.clock_s() - self._called_at.get(node, 0.0) > UNCALLED_S

    def _beat(self, node: NodeId) -> None:
        """Call a node: one call carries what both say of themselves."""
        beat = self.presence.beat(self.machine.clock_s(), node)
        head = self.replica.ledger.head()
        self.world.network.send(
            self.place,
            self.world.network.where(node),
            lambda peer: peer.answer_beat(beat, head, self.place),
            lambda own: _drop(own.tell(AddressRefused(node))),
        )

    def answer_beat(self, beat: Beat, head: str, place: NodeId) -> None:
        """Take in a heartbeat of a member and answer with ours."""
        if self.answers(beat.node):
            self._called_at[beat.node] = self.machine.clock_s()
            self.hear(beat, head)
            ours = self.presence.beat(self.machine.clock_s(), beat.node)
            own_head = self.replica.ledger.head()
            self.world.network.send(self.place, place, lambda own: own.hear(ours, own_head))

    def hear(self, beat: Beat, head: str) -> None:
        """Take in a heartbeat of a member."""
        if self.knows(beat.node):
            self.tell(beat)
            if head != self.replica.ledger.head():
                self.anti_entropy.request(beat.node)

    def answer_pre_vote(self, node: NodeId, term: int, stability: int) -> PreVoteAnswered | None:
        """Say whether a node may lead."""
        if not self.answers(node):
            return None
        effects = self.tell(PreVoteRequested(node, term, stability))
        answer = next(effect for effect in effects if isinstance(effect, AnswerPreVote))
        return PreVoteAnswered(self.node, answer.granted, answer.term)

    def answer_exchange(
        self, node: NodeId, have: Mapping[str, int], raws: Sequence[bytes]
    ) -> Reply:
        """Exchange entries with a member.

        Raises:
            RefusedError: it is none.
        """
        if not self.answers(node):
            raise RefusedError(f"{node[:2]} isn't answered")
        return self.anti_entropy.answer(have, raws)

    def say_goodbye(self) -> None:
        """Resign, and tell everybody, with who is to lead next; that one last."""
        election, alive = self.presence.election, self.presence.membership.alive() - {self.node}
        successor = election.steadiest(alive) if election.leader == self.node else None
        self._is_silent = True
        self.tell(Resigned())
        for node in sorted(self.others(), key=lambda node: node == successor):
            self.world.network.send(
                self.place,
                self.world.network.where(node),
                lambda peer: peer.hear_goodbye(self.node, successor),
            )

    def hear_goodbye(self, node: NodeId, successor: NodeId | None) -> None:
        """Take in that a node stops, and who is to lead in its place."""
        if not self.answers(node):
            return
        self.tell(SaidGoodbye(node))
        if successor is not None:
            self.world.met["a leader that leaves names another"] += 1
            self.tell(HandedOver(successor))

    def answer_own_key(self, number: str) -> bool:
        """Say to somebody with our key whether it is this process that greets."""
        is_itself = self.clones.is_greeted_by_itself(number, "a caller")
        if not is_itself:
            self.fall_silent()
        return is_itself

    def fall_silent(self) -> None:
        """Another machine has our key: lead no more and beat no more."""
        if not self._is_silent:
            self._is_silent = True
            self.world.disturb(f"{self.place[:8]} falls silent: {self.clones.seen_at}")
        self.tell(Resigned())

    def take_up_ledger(self) -> None:
        """Do what new entries call for."""
        members = frozenset(self.replica.ledger.state.members)
        self.member_since = {node: self.member_since.get(node, self.world.now) for node in members}
        ledger = self.replica.ledger
        self.tell(TermSeen(ledger.highest_term()))
        self.tell(TermSeen(ledger.highest_term(besides=self.node), is_of_others=True))
        self.tell(RosterChanged(members - {self.node}))
        if self.is_removed:
            self.world.met["a node learns that it was removed"] += 1
            self.tell(Resigned())
        elif not self._is_silent:  # a removal may turn out not to count
            self.tell(Reinstated())
        self.world.checks.look_at_ledger(self)
        self.strangers.note_members(members)

    def check_awake(self) -> None:
        """Step down if we slept: everything that acts for a leader comes here first."""
        self._act(self.presence.wake(self.machine.clock_s()))

    # --- what is done ---

    def tell(self, event: Input) -> list[Effect]:
        """Hand the machine an event and do what it asks for."""
        effects = self.presence.step(self.machine.clock_s(), event)
        self._act(effects)
        return effects

    def record(self, choose: "Callable[[Process], Sequence[Fact]]") -> Entry | None:
        """Append facts as the leader; None where this node doesn't lead, or has no room."""
        self.check_awake()
        if self.leader_term is None or not self.leader_term.is_open:
            return None
        facts = choose(self)
        if not facts:
            return None
        facts = [*facts, *shut_with(self.replica.ledger.state, self.node, facts)]
        self.world.witness.appends(self, self.leader_term)
        self.world.door.lets_in(self, facts)
        try:
            entry = self.replica.append(self.leader_term.term, facts)
        except DiskFullError:
            return None
        self.leader_term.appended += 1
        self.world.witness.appended(self, entry)
        self.world.door.wrote(entry)
        self.take_up_ledger()
        self.anti_entropy.spread()
        return entry

    def others(self) -> list[NodeId]:
        """Return the other members."""
        return [node for node in self.replica.ledger.state.members if node != self.node]

    def knows(self, node: NodeId) -> bool:
        """Say whether a node is a member, as far as we know."""
        return node in self.replica.ledger.state.members

    def answers(self, node: NodeId) -> bool:
        """Say whether we answer a node: a member, unless another machine has our key."""
        return self.knows(node) and not self.clones.is_seen

    def acquainted_s(self, other: "Process") -> float:
        """Return for how long both have known each other as members; 0 where one doesn't."""
        now = self.world.now
        ours = self.member_since.get(other.node, now)
        return now - max(ours, other.member_since.get(self.node, now))

    @property
    def is_removed(self) -> bool:
        """Say whether we were a member and aren't any more."""
        roster = self.replica.ledger.state.roster
        return not self.knows(self.node) and roster.known(self.node) is not None

    def _act(self, effects: Sequence[Effect]) -> None:
        is_saved = True
        for effect in effects:
            if isinstance(effect, PersistTerm):
                is_saved = is_saved and self._save_term(effect.term)
            elif is_saved or isinstance(effect, StepDown):
                self._do(effect)
        if not is_saved:
            self.tell(StorageFailed())

    def _do(self, effect: Effect) -> None:
        match effect:
            case RequestPreVote(nodes, term):
                for node in sorted(nodes):
                    self._ask(node, term)
            case BecomeLeader(term, reason):
                self._lead(term, reason)
            case StepDown(reason):
                self.world.tell(f"{self.node[:2]} steps down: {reason}")
                self._set_leader_term(None)
            case Changed():
                self.world.tell(
                    f"{self.node[:2]} thinks {effect.node[:2]} {effect.after}: {effect.reason}"
                )
                self.world.witness.judged(self, effect)
            case _:
                pass

    def _ask(self, node: NodeId, term: int) -> None:
        call(
            self,
            self.world.network.where(node),
            lambda peer: peer.answer_pre_vote(self.node, term, self.machine.stability),
            lambda own, answer: None if answer is None else _drop(own.tell(answer)),
            PRE_VOTE_TIMEOUT_S,
        )

    def _lead(self, term: int, reason: str) -> None:
        self.world.tell(f"{self.node[:2]} leads in term {term}: {reason}")
        self.world.witness.led(self, term, reason)
        if self.leader_term is not None:
            self.leader_term.term = term
            return
        leader_term = LeaderTerm(term, self.world.now, PairingWindow(self.world.profile.open_s))
        self._set_leader_term(leader_term)
        self.anti_entropy.unite(leader_term, self.presence.membership.alive() - {self.node})

    def _set_leader_term(self, leader_term: LeaderTerm | None) -> None:
        self.leader_term = leader_term
        self.world.checks.note_acting(self.machine)

    def _save_term(self, term: int) -> bool:
        try:
            self.machine.disk.save_term(term)
        except DiskFullError:
            self.has_trouble = True
            return False
        self.has_trouble = False
        return True

    def _save_again(self) -> None:
        if self.has_trouble and self._save_term(self.presence.election.term):
            self.tell(StorageRecovered())
        self.replica.save_again()


def _drop(_effects: object) -> None:
    """An answer's effects are done already."""
