"""Who may come in and who must stay out, judged apart from the code that decides it.

Owns the invariants of belonging: nobody is let in but through the open window or by a token that
counts, and whoever was removed is out, with what it wrote afterwards. Reads facts, not states.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from jupiterd.cluster.facts.facts import (
    WALKED_IN,
    Fact,
    NodeAdmitted,
    NodeRemoved,
    PairingWindowLocked,
    PairingWindowSet,
    TokenIssued,
    TokenWithdrawn,
)
from jupiterd.cluster.ledger.entry import Entry
from jupiterd.cluster.ledger.lww_registers import Order
from jupiterd.ids import NodeId
from tests.simulation.invariants.violation import Violation

if TYPE_CHECKING:
    from tests.simulation.node.process import Process
    from tests.simulation.world import World

CLOSING_S = 1.5
"""A leader that sees that the window is over is that late: a tick, an entry."""


class Door:
    """Watches who is let in, and who is a member in the end."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._seen_open: dict[tuple[NodeId, float, int], float] = {}
        self.shut_at: dict[Order, float] = {}
        """When each entry that names who was in came to be."""
        self.backdated: list[tuple[float, NodeId, NodeAdmitted]] = []
        """Admissions that were dated back: when that was, and by which guest."""

    def lets_in(self, process: "Process", facts: Sequence[Fact]) -> None:
        """Look at what a leader is about to record."""
        inside = process.replica.ledger.state.members
        for fact in facts:
            if isinstance(fact, NodeAdmitted) and fact.node not in inside:  # else it is a yes
                self._judge(process, fact)

    def wrote(self, entry: Entry) -> None:
        """Note when a leader has named who was in."""
        if any(isinstance(fact, PairingWindowLocked) for fact in entry.facts):
            self.shut_at[entry.order] = self._world.now

    def look(self, process: "Process") -> None:
        """Note since when a leader has seen the window open."""
        if process.leader_term is not None and process.leader_term.is_open:
            edit = process.replica.ledger.state.window_edit
            key = process.node, process.leader_term.began_at, edit
            self._seen_open.setdefault(key, self._world.now)

    def _judge(self, process: "Process", fact: NodeAdmitted) -> None:
        held = [entry_fact for entry in self._held(process) for entry_fact in entry.facts]
        if any(isinstance(one, NodeRemoved) and one.node == fact.node for one in held):
            self._fail(process, fact, "which was removed")
        if fact.token:
            self._judge_token(process, fact, held)
        elif process.replica.ledger.has_forgotten({}):
            return  # a setting that lost isn't in the sum
        else:
            self._judge_window(process, fact)

    def _judge_token(self, process: "Process", fact: NodeAdmitted, held: Sequence[Fact]) -> None:
        placed = [known for _, known in process.replica.ledger.state.placed()]
        everything = [*held, *placed]
        issued = [f for f in everything if isinstance(f, TokenIssued) and f.token == fact.token]
        withdrawn = {f.token for f in everything if isinstance(f, TokenWithdrawn)}
        used = {f.node for f in everything if isinstance(f, NodeAdmitted) and f.token == fact.token}
        shown = self._world.newcomers[fact.node].secrets_shown
        if not issued or fact.token in withdrawn:
            self._fail(process, fact, "with a token that doesn't count")
        elif issued[0].uses and len(used) >= issued[0].uses:
            self._fail(process, fact, "with a token that is used up")
        elif (fact.token, issued[0].secret) not in shown:
            self._fail(process, fact, "which doesn't know the token's secret")

    def _judge_window(self, process: "Process", fact: NodeAdmitted) -> None:
        settings = [
            (known.edit, not known.is_open, *entry.order)
            for entry in self._held(process)
            for known in entry.facts
            if isinstance(known, PairingWindowSet)
        ]
        if not settings and self._world.profile.is_first_day:
            return
        if not settings or max(settings)[1]:
            self._fail(process, fact, "while the window is closed")
        self._judge_hour(process, fact, edit=max(settings)[0])

    def _judge_hour(self, process: "Process", fact: NodeAdmitted, edit: int) -> None:
        leader_term, machine = process.leader_term, process.machine
        assert leader_term is not None
        seen_at = self._seen_open.get((process.node, leader_term.began_at, edit), self._world.now)
        open_s = (self._world.now - seen_at) * machine.rate
        has_room = not machine.disk.is_full
        if has_room and open_s > self._world.profile.open_s + CLOSING_S:
            self._fail(process, fact, f"{open_s:.1f} s after the window was opened")

    @staticmethod
    def _held(process: "Process") -> list[Entry]:
        return process.replica.ledger.entries()

    def _fail(self, process: "Process", fact: NodeAdmitted, why: str) -> None:
        raise Violation(f"{process.node[:2]} lets {fact.node[:2]} in, {why}")

    # --- in the end ---

    def check_the_trusted(self, process: "Process") -> None:
        """Whoever is trusted was let in by a yes, of one who was, and so on to the founders."""
        entries = sorted((r.entry for r in self._world.witness.records), key=lambda e: e.order)
        trusted = set(self._world.founders)
        for entry, fact in _all(entries, NodeAdmitted):
            if entry.writer.node in trusted and fact.reason != WALKED_IN:
                trusted.add(fact.node)
        if more := process.replica.ledger.state.roster.trusted - trusted:
            raise Violation(f"{min(more)[:2]} is trusted, and nobody had said yes to it")

    def check_the_backdated(self, process: "Process") -> None:
        """Nobody is in by an admission that came to be after the door was shut.

        What stands after a person's yes to its author counts: a trusted member may admit whom it
        likes, and nobody can say when it wrote what.
        """
        state = process.replica.ledger.state
        known = {at for at, fact in state.placed() if isinstance(fact, PairingWindowLocked)}
        # Of an entry that was the last before the power went out, nobody took note.
        now = self._world.now
        first_at = min((self.shut_at.get(at, now) for at in known), default=now)
        for at, guest, fact in self.backdated:
            counts = at <= first_at or guest in state.roster.trusted
            if not counts and state.members.get(fact.node) == fact:
                raise Violation(f"{fact.node[:2]} is in, by an admission that was dated back")

    def check_the_removed(self, process: "Process") -> None:
        """Whoever was removed is out, with its guests, unless who did so may be out itself."""
        ledger = process.replica.ledger
        entries = [record.entry for record in self._world.witness.records]
        tips = ledger.tips()
        known = [e for e in entries if tips.get(str(e.writer), 0) >= e.index]
        doubtful = _who_may_be_out(known)
        for entry, removal in _all(known, NodeRemoved):
            if entry.writer.node not in doubtful:
                self._check_removal(process, known, removal)

    def _check_removal(
        self, process: "Process", known: Sequence[Entry], removal: NodeRemoved
    ) -> None:
        state = process.replica.ledger.state
        removed = removal.node
        if set(state.roster.admissions_of(removed)) - set(removal.admissions):
            return  # another group had let it in as well
        if removed in state.members:
            raise Violation(f"{removed[:2]} was removed, and is a member for {process.node[:2]}")
        for entry, guest in _all(known, NodeAdmitted):
            is_late = entry.index > removal.last_seen.get(entry.writer.ledger, 0)
            is_only = len(state.roster.admissions_of(guest.node)) == 1
            is_in = guest.node in state.members
            if entry.writer.node == removed and is_late and is_only and is_in:
                raise Violation(f"{guest.node[:2]} is in, let in by {removed[:2]}, which is out")


def _who_may_be_out(known: Sequence[Entry]) -> set[NodeId]:
    """Return who was removed, whom those let in, whom these let in, and so on."""
    found = {removal.node for _, removal in _all(known, NodeRemoved)}
    guests = [(entry.writer.node, fact.node) for entry, fact in _all(known, NodeAdmitted)]
    while more := {guest for host, guest in guests if host in found} - found:
        found |= more
    return found


def _all(entries: Sequence[Entry], kind: type) -> "Iterator[tuple[Entry, Fact]]":
    for entry in entries:
        for fact in entry.facts:
            if isinstance(fact, kind):
                yield entry, fact
