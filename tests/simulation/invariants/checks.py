"""What must hold of the cluster as a whole.

Owns the invariants that need more than one node: leaders of one group, ledgers with one head, the
dead that must be noticed. Ledgers are looked at whenever they change, two leaders after each event;
what only time can break, every second. `witness` watches single events.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from jupiterd.cluster.facts.facts import CheckpointCommitted, RoundCommitted
from jupiterd.cluster.ledger.chain import Tip
from jupiterd.cluster.ledger.ledger import Entry, Ledger
from jupiterd.cluster.membership.failure_detector import Liveness
from jupiterd.ids import NodeId
from tests.simulation.invariants.in_force import Progress, what_is_not_in_force
from tests.simulation.invariants.violation import Violation
from tests.simulation.node.recording import CYCLE
from tests.simulation.node.signing import sign

if TYPE_CHECKING:
    from tests.simulation.node.machine import Machine
    from tests.simulation.node.process import Process
    from tests.simulation.world import World

LOOK_EVERY_S = 1.0
ALL_BYTES = 1 << 40

NO_LEADER_S = 12.0
"""Any group in peace has elected somebody by then: two waits, two rounds of questions, one more."""

TWO_LEADERS_S = 6.0
"""Two leaders that can hear each other have settled it by then."""

NOTICED_S = 1.5
"""Beside the wait of membership: a beat on its way, a tick."""


class Checks:
    """Looks at a world again and again."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._told_by_head: dict[str, tuple[str, str]] = {}
        self._checked: dict[str, set[str]] = {}
        self._looked_at: dict[NodeId, tuple[Ledger, dict[str, Tip]]] = {}
        self._lines: dict[NodeId, Sequence[Progress]] = {}
        """The line of each ledger that was looked at last."""
        self.acting: dict[NodeId, Machine] = {}
        """Who leads just now, asleep or not."""
        self._both_since: dict[tuple[NodeId, NodeId], float] = {}

    def keep_looking(self) -> None:
        """Look now, and again in a while."""
        self.check_leaders()
        self.check_the_dead()
        self._world.at(LOOK_EVERY_S, self.keep_looking)

    def note_acting(self, machine: "Machine") -> None:
        """Take up that a machine begins to lead or stops."""
        if machine.process is not None and machine.process.leader_term is not None:
            self.acting[machine.place] = machine
        else:
            self.acting.pop(machine.place, None)

    def check_two_leaders(self) -> None:
        """After each event: two that hear each other lead no longer than an election waits."""
        world = self._world
        both: dict[tuple[NodeId, NodeId], float] = {}
        for one, other in combinations(self.acting.values(), 2):
            if self._may_meet(one, other):
                pair = one.place, other.place
                began_at = max(world.now - world.network.fair_s(), one.up_since, other.up_since)
                both[pair] = max(self._both_since.get(pair, world.now), began_at)
                limit_s = world.profile.timing.election_max_s / min(one.rate, other.rate)
                if world.now - both[pair] > limit_s:
                    raise Violation(f"at {world.now:.1f} s: {pair[0][:2]} and {pair[1][:2]} lead")
        self._both_since = both

    def _may_meet(self, one: "Machine", other: "Machine") -> bool:
        """Say whether two leaders run and hear each other as members."""
        if one.process is None or other.process is None or one.is_asleep or other.is_asleep:
            return False
        is_open = self._world.network.is_open(one.place, other.place)
        return is_open and one.process.acquainted_s(other.process) > 0.0

    def check_leaders(self) -> None:
        """One node acts as leader in a group that was left in peace for a while.

        So no two of them act under one term there either. In a group where some pair can't hear
        each other two may lead; a group that hears another one, and can't answer, may follow a
        leader there. A link of one direction carries no calls in life.
        """
        if self._world.quiet_s() < TWO_LEADERS_S:
            return
        network = self._world.network
        for group in filter(_is_acquainted, self._apart()):
            acting = [
                m for m in group if m.process is not None and m.process.leader_term is not None
            ]
            names = ", ".join(machine.node[:2] for machine in acting or group)
            if len(acting) > 1 and network.is_complete(group):
                raise Violation(f"at {self._world.now:.1f} s: {names} lead one group")
            if not acting and self._is_overdue(group):
                raise Violation(f"at {self._world.now:.1f} s: nobody leads {names}")

    def _apart(self) -> "list[list[Machine]]":
        network = self._world.network
        speaking = [machine for machine in self._world.living() if not machine.is_silent]
        return [g for g in network.groups(speaking) if network.is_apart(g)]

    def _is_overdue(self, group: "list[Machine]") -> bool:
        """Say whether a group should have elected somebody; one full disk may hold it up."""
        slowest = min(machine.rate for machine in group)
        has_room = not any(machine.disk.is_full for machine in group)
        return has_room and self._world.quiet_s() * slowest >= NO_LEADER_S

    def check_the_dead(self) -> None:
        """Whoever is silent is gone for everybody in time, however long rumours go round."""
        world = self._world
        if world.profile.rates != (1.0, 1.0):
            return
        for dead in world.machines.values():
            limit_s = self._noticing_s(dead)
            is_due = min(world.now - dead.down_since, world.network.fair_s()) >= limit_s
            if is_due and not (dead.is_awake or world.clones.has_two(dead.node)):
                self._check_noticed(dead, limit_s)

    def _noticing_s(self, dead: "Machine") -> float:
        """Where somebody dozed since, heartbeats may have waited there, and they count as new."""
        timing = self._world.profile.timing
        limit_s = timing.gone_s + NOTICED_S
        has_dozed = any(m.up_since >= dead.down_since for m in self._world.machines.values())
        return limit_s + timing.beat_s + timing.asleep_s if has_dozed else limit_s

    def _check_noticed(self, dead: "Machine", limit_s: float) -> None:
        """Whoever learns of a member, or learns that it is one after all, waits from then on."""
        world = self._world
        for machine in world.living():
            assert machine.process is not None
            known = machine.process.presence.membership.liveness(dead.node)
            learnt_at = machine.process.member_since.get(dead.node, 0.0)
            is_settled = world.now - max(machine.up_since, learnt_at) >= limit_s
            is_settled = is_settled and machine.node != dead.node
            if is_settled and known is not Liveness.GONE:
                raise Violation(f"{machine.node[:2]} still thinks the dead {dead.node[:2]} {known}")

    def check_ledgers(self) -> None:
        """At the end: every ledger once more, from its first entry on."""
        for machine in self._world.machines.values():
            if machine.process is not None:
                self._looked_at.pop(machine.place, None)
                self.look_at_ledger(machine.process)

    def look_at_ledger(self, process: "Process") -> None:
        """After each change of a ledger: what is new in it fits, and is in what it adds up to."""
        ledger = process.replica.ledger
        known, last = self._looked_at.get(process.place, (ledger, {}))
        last = last if known is ledger else {}
        new, _ = ledger.lacking({writer: tip.index for writer, tip in last.items()}, ALL_BYTES)
        self._looked_at[process.place] = ledger, ledger.last()
        self._check_chains(new, last)
        for entry in new:
            self._note_entry(ledger, entry)
        self._check_line(process)
        self._check_told(process)
        lost = what_is_not_in_force(ledger.state, [fact for entry in new for fact in entry.facts])
        if lost:
            raise Violation(f"on {process.place[:2]}: {lost}")

    def _check_told(self, process: "Process") -> None:
        """Equal heads mean equal histories, states and lines.

        The head is compared with the tips themselves: it must tell any two ledgers apart.
        """
        content_of(process)
        known = self._told_by_head.setdefault(process.replica.ledger.head(), process.content)
        if known != process.content:
            raise Violation("two ledgers with one head aren't equal")

    def _check_line(self, process: "Process") -> None:
        """Check a line whenever it is another one."""
        cycle = process.replica.ledger.state.cycles.get(CYCLE)
        line = () if cycle is None else cycle.canonical_branch()
        if line is not self._lines.get(process.place):
            check_line(line)
            self._lines[process.place] = line

    def _note_entry(self, ledger: Ledger, entry: Entry) -> None:
        checked = self._checked.setdefault(str(entry.writer), set())
        if entry.hash not in checked:
            self._check_entry(ledger, entry)
            checked.add(entry.hash)

    @staticmethod
    def _check_chains(entries: Sequence[Entry], last: Mapping[str, Tip]) -> None:
        """Each of these entries follows the one of its writer before it."""
        previous: dict[str, Entry | Tip] = dict(last)
        for entry in entries:
            writer = str(entry.writer)
            before = previous.get(writer)
            is_chained = before is None or (
                entry.previous == before.hash
                and entry.index == before.index + 1
                and entry.term >= before.term
            )
            if not is_chained:
                raise Violation(
                    f"entry {entry.index} of {writer[:2]} doesn't follow the one before"
                )
            previous[writer] = entry

    def _check_entry(self, ledger: Ledger, entry: Entry) -> None:
        """It was written by a member, admitted by an entry before it, who signed it."""
        node = entry.writer.node
        admitted_at = ledger.state.admitted_at(node)
        is_founder = admitted_at == entry.order
        if admitted_at is None or not (is_founder or admitted_at < entry.order):
            raise Violation(f"{node[:2]} wasn't a member when it wrote entry {entry.index}")
        if entry.signature != sign(node, entry.body):
            raise Violation(f"{node[:2]} didn't sign entry {entry.index}")
        self._world.witness.note_hash(str(entry.writer), entry.index, entry.hash)


def line_of(ledger: Ledger) -> str:
    """Return the canonical line of the cycle, as text."""
    cycle = ledger.state.cycles.get(CYCLE)
    line = () if cycle is None else cycle.canonical_branch()
    return " ".join(
        fact.artifact if isinstance(fact, CheckpointCommitted) else f"{fact.round} {fact.verdict}"
        for fact in line
    )


def content_of(process: "Process") -> str:
    """Return what the state and the canonical line are, as text; made once for each history."""
    ledger = process.replica.ledger
    head = true_head(ledger)
    if process.content[0] != head:
        process.content = head, f"{ledger.state.digest()} {line_of(ledger)}"
    return process.content[1]


def check_line(line: Sequence[Progress]) -> None:
    """The canonical line has one final checkpoint for each round, no gap, and whole parents."""
    last, rounds = "", 0
    for fact in line:
        if isinstance(fact, RoundCommitted):
            rounds += 1
        is_next = fact.round == (rounds if isinstance(fact, RoundCommitted) else rounds + 1)
        above = fact.final_checkpoint if isinstance(fact, RoundCommitted) else fact.parent
        if above != last or not is_next:
            raise Violation(f"the line breaks in round {fact.round}")
        last = fact.artifact if isinstance(fact, CheckpointCommitted) else last


def _is_acquainted(group: "list[Machine]") -> bool:
    """Say whether everybody in a group knows everybody: who was removed leads on for itself."""
    processes = [machine.process for machine in group if machine.process is not None]
    return all(one.knows(other.node) for one in processes for other in processes)


def true_head(ledger: Ledger) -> str:
    """Return what `Ledger.head` hashes; kept apart from it so that it can be judged."""
    return " ".join(sorted(f"{writer}:{tip.hash}" for writer, tip in ledger.last().items()))
