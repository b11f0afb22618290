"""What must hold whenever something happens.

Owns the invariants of single events: leading, appending, claiming, accusing. Sees everything, and
touches nothing. `checks` looks at the whole cluster now and then, `healing` at its end.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jupiterd.cluster.facts.facts import TokenIssued
from jupiterd.cluster.ledger.ledger import Entry
from jupiterd.cluster.membership.failure_detector import Liveness
from jupiterd.cluster.membership.fencing import Obeyed
from jupiterd.cluster.membership.presence import Changed
from jupiterd.ids import NodeId
from tests.simulation.invariants.violation import Violation
from tests.simulation.node.replica import load

if TYPE_CHECKING:
    from tests.simulation.node.disk import Content
    from tests.simulation.node.leader_term import LeaderTerm
    from tests.simulation.node.machine import Machine
    from tests.simulation.node.process import Process
    from tests.simulation.world import World

STEADY_S = 4.0
"""Whoever has run undisturbed for so long has been heard by everybody it reaches."""


TWIN = "twin-"
"""How the writer of a cloned machine is named: the one that may have two entries of one number."""


@dataclass
class Recorded:
    """An entry that a leader has written: promised to live as long as one holder's disk."""

    entry: Entry
    holders: set[NodeId] = field(default_factory=set[NodeId])
    """Whose disk was said to have it, and hasn't been put back to before since."""

    def __post_init__(self) -> None:
        self.writer = str(self.entry.writer)


class Witness:
    """Watches every process."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.led_last: dict[NodeId, int] = {}
        """The last term each machine led in; a restored disk doesn't know it and may lead again."""
        self._led_in: dict[int, set[NodeId]] = {}
        self.hash_at: dict[tuple[str, int], str] = {}
        self.records: list[Recorded] = []
        self.appended_at = 0.0
        """When anybody last wrote an entry."""
        self._writer_in: dict[tuple[NodeId, int], str] = {}
        """Which ledger of a node has written in a term."""
        self._obeyed: dict[NodeId, Obeyed] = {}
        self._woken_in_term: dict[NodeId, LeaderTerm] = {}
        self._claimed: dict[NodeId, tuple[Content | None, dict[str, int]]] = {}

    # --- leading ---

    def led(self, process: "Process", term: int, reason: str) -> None:
        """A term is on disk before it is used, and never used twice from one disk's history."""
        node = process.node
        self._must(process.machine.disk.content.term == term, f"term {term} isn't on disk")
        held = process.replica.ledger.highest_term()
        self._must(term > held, f"term {term} isn't above that of every entry held, {held}")
        last = self.led_last.get(process.place, -1)
        self._must(term > last, f"{node[:2]} leads in term {term} after {last}")
        self.led_last[process.place] = term
        others = self._led_in.setdefault(term, {node})
        if node not in others:
            others.add(node)
            self._world.met["two leaders in one term"] += 1
        self._undisturbed(process, reason)

    def _undisturbed(self, winner: "Process", reason: str) -> None:
        """Nobody wins while a steady node between them hears a leader that works.

        Only where clocks go alike: with half the rate a leader beats too seldom for a quick clock.
        """
        is_won = "agree" in reason or "didn't answer" in reason or reason == "alone"
        if not is_won or not self._is_steady(winner.machine):
            return
        for between in self._world.living():
            leader = self._leader_of(between)
            if leader is None or leader is winner.machine or between is winner.machine:
                continue
            pairs = ((winner.place, between.place), (between.place, leader.place))
            if (
                self._know_each_other(winner, between)
                and self._is_steady(between)
                and all(
                    one == other or self._world.network.is_open(one, other) for one, other in pairs
                )
            ):
                self._fail(
                    f"{winner.node[:2]} disturbs {leader.node[:2]} that {between.node[:2]} hears"
                )

    @staticmethod
    def _know_each_other(winner: "Process", between: "Machine") -> bool:
        """Say whether they are members for each other; who was just admitted isn't everywhere."""
        return between.process is not None and winner.acquainted_s(between.process) >= STEADY_S

    def _leader_of(self, machine: "Machine") -> "Machine | None":
        """Return who leads this machine, if it is steady, says so itself and can write."""
        assert machine.process is not None
        leader = machine.process.presence.election.leader
        if leader is None:
            return None
        found = self._world.machines[self._world.clones.where(leader)]
        leader_term = found.process.leader_term if found.process is not None else None
        is_old = leader_term is not None and self._world.now - leader_term.began_at >= STEADY_S
        return found if is_old and self._is_steady(found) else None

    def _is_steady(self, machine: "Machine") -> bool:
        """Say whether a machine has run for a while in fair weather, with clocks going alike."""
        world = self._world
        if world.profile.rates != (1.0, 1.0) or not machine.is_awake:
            return False
        if world.clones.has_two(machine.node):
            return False
        return min(world.now - machine.up_since, world.network.fair_s()) >= STEADY_S

    # --- appending ---

    def woke(self, machine: "Machine") -> None:
        """Remember the term that a machine slept in: it must not be used any more.

        Unless it saw nobody: then nobody who saw it can have taken over.
        """
        timing = self._world.profile.timing
        if machine.slept_local_s > timing.beat_s + timing.asleep_s and machine.process is not None:
            leader_term, membership = (
                machine.process.leader_term,
                machine.process.presence.membership,
            )
            if leader_term is not None and membership.present() - {machine.node}:
                self._woken_in_term[machine.place] = leader_term

    def unites(
        self, process: "Process", leader_term: "LeaderTerm", nodes: frozenset[NodeId]
    ) -> None:
        """Remember what the others held who will surely answer a new leader."""
        for node in nodes:
            if self._world.clones.has_two(node):
                continue  # either may answer
            machine = self._world.machines[self._world.clones.where(node)]
            can_reach = self._world.network.is_open(process.place, machine.place)
            is_answered = machine.process is not None and machine.process.knows(process.node)
            if machine.disk.is_full:
                continue  # what it can't save it doesn't acknowledge, and answers nobody
            if machine.process is not None and is_answered and machine.is_awake and can_reach:
                leader_term.tips_of_others[machine.place] = machine.process.replica.ledger.tips()

    def appends(self, process: "Process", leader_term: "LeaderTerm") -> None:
        """A leader that slept has stepped down; a new one has united with everybody it reached.

        Its term is below none of the entries that it holds. Whoever wins takes a term above all
        that it holds then (`led`); an equal one may come before its first append, where two groups
        elected in one term and the other leader is gone when they meet. Both entries count, and
        nothing in the state hangs on which of them sorts first.
        """
        slept = self._woken_in_term.get(process.place)
        self._must(slept is not leader_term, f"{process.node[:2]} slept in this term and appends")
        ledger = process.replica.ledger
        self._must(
            leader_term.term >= ledger.highest_term(), "the leader's term is below an entry's"
        )
        if leader_term.appended:
            return
        if self._world.quiet_s() < self._world.now - leader_term.began_at:
            return
        mine = ledger.tips()
        for node, tips in leader_term.tips_of_others.items():
            machine = self._world.machines.get(node)
            other = None if machine is None else machine.process
            if other is None or not process.acquainted_s(other):
                continue  # one has removed the other meanwhile
            if other.clones.is_seen or process.clones.is_seen:
                continue  # neither answers any more
            has_all = all(
                mine.get(writer, 0) >= index
                for writer, index in tips.items()
                if not self._may_fork(writer)
            )
            self._must(has_all, f"{process.node[:2]} appends without the entries of {node[:2]}")

    def appended(self, process: "Process", entry: Entry) -> None:
        """Nobody ever writes two entries of one number."""
        self._world.tell(
            f"{process.node[:2]} appends {entry.index} in term {entry.term}: "
            f"{', '.join(type(fact).__name__ for fact in entry.facts)}"
        )
        self.appended_at = self._world.now
        self.note_hash(str(entry.writer), entry.index, entry.hash)
        self._note_writer(process, entry)
        for fact in entry.facts:
            if isinstance(fact, TokenIssued):
                self._world.tokens[fact.token] = fact
        self.records.append(Recorded(entry, {process.place}))

    def _may_fork(self, writer: str) -> bool:
        """Say whether two write under one name: their entries don't unite."""
        return f"/{TWIN}" in writer or writer in self._world.clones.copied_writers

    def note_hash(self, writer: str, index: int, digest: str) -> None:
        """One hash for each (writer, index), wherever it is met."""
        if self._may_fork(writer):
            return
        known = self.hash_at.setdefault((writer, index), digest)
        self._must(known == digest, f"two entries {index} of writer {writer[:2]}")

    def _note_writer(self, process: "Process", entry: Entry) -> None:
        """A term is a number and a leader; one ledger is written in it, after a restart too."""
        node, term = entry.writer.node, entry.term
        known = self._writer_in.setdefault((process.place, term), entry.writer.ledger)
        self._must(known == entry.writer.ledger, f"two writers of {node[:2]} in term {term}")

    # --- obeying ---

    def obeyed(self, process: "Process", order: Obeyed) -> None:
        """Nobody obeys a lower term or epoch, or a second leader of a term; its disk knows it.

        Nor anybody whom it doesn't follow.
        """
        node, election = process.node, process.presence.election
        follows = order.leader == election.leader and order.term <= election.term
        self._must(follows, f"{node[:2]} obeys {order}, and follows {election.leader}")
        highest = self._obeyed.get(process.place, Obeyed())
        is_lower = (order.term, order.attempt) < (highest.term, highest.attempt)
        is_rival = order.term == highest.term and order.leader != highest.leader
        is_fine = highest == Obeyed() or not (is_lower or is_rival)
        self._must(is_fine, f"{node[:2]} obeys {order} after {highest}")
        is_saved = process.machine.disk.content.obeyed == str(order)
        self._must(is_saved, f"{node[:2]} obeys {order}, which isn't on its disk")
        self._obeyed[process.place] = order

    # --- recording ---

    def claimed(self, process: "Process") -> None:
        """Whoever tells a peer what it has, has it on disk, and so holds what was recorded."""
        ledger, content = process.replica.ledger, process.machine.disk.content
        last_content, last_tips = self._claimed.get(process.place, (None, {}))
        tips = ledger.tips()
        if content is last_content and tips == last_tips:
            return
        self._claimed[process.place] = content, tips
        is_kept = {entry.raw for entry in ledger.entries()}.issubset(content.entries)
        self._must(is_kept, f"{process.node[:2]} claims entries that aren't on its disk")
        for record in self.records:
            if tips.get(record.writer, 0) >= record.entry.index:
                record.holders.add(process.place)

    def restored(self, machine: "Machine", content: "Content") -> None:
        """A disk was put back: it holds what it held then, and may use its terms again."""
        self.led_last[machine.place] = content.term
        self._writer_in = {
            (node, term): writer
            for (node, term), writer in self._writer_in.items()
            if node != machine.place or term <= content.term
        }
        self._obeyed[machine.place] = Obeyed.parse(content.obeyed)
        tips = load(content).tips()
        for record in self.records:
            if tips.get(str(record.entry.writer), 0) < record.entry.index:
                record.holders.discard(machine.place)

    def copied(self, copy: "Machine") -> None:
        """A machine was copied: it holds what the other one held, and may use its terms as well."""
        self.restored(copy, copy.disk.content)
        tips = load(copy.disk.content).tips()
        for record in self.records:
            if tips.get(str(record.entry.writer), 0) >= record.entry.index:
                record.holders.add(copy.place)

    # --- accusing ---

    def judged(self, process: "Process", change: Changed) -> None:
        """Nobody takes a node for silent that it must have heard, whoever of them slept.

        A goodbye may have waited for one that slept; the next heartbeat undoes it.
        """
        world = self._world
        if process.clones.is_seen or world.clones.has_two(change.node):
            return
        machine, accused = process.machine, world.machines[world.clones.where(change.node)]
        is_worse = change.after is Liveness.GONE or (
            change.after is Liveness.SUSPECT and change.before is Liveness.ALIVE
        )
        is_for_silence = change.reason.startswith("not heard")
        if (
            not (is_worse and is_for_silence)
            or world.profile.rates != (1.0, 1.0)
            or not accused.is_awake
            or accused.is_silent
        ):
            return
        is_open = world.network.is_open(machine.place, accused.place)
        assert accused.process is not None
        acquainted_s = process.acquainted_s(accused.process)
        steady_s = min(world.now - accused.up_since, world.network.fair_s(), acquainted_s)
        heard_for_s = world.profile.timing.gone_s + STEADY_S
        if is_open and steady_s >= heard_for_s:
            self._fail(
                f"{machine.node[:2]} accuses {accused.node[:2]}, which beats: {change.reason}"
            )

    def _must(self, holds: bool, what: str) -> None:
        if not holds:
            self._fail(what)

    def _fail(self, what: str) -> None:
        raise Violation(f"at {self._world.now:.3f} s: {what}")
