"""A process's copy of the ledger: in memory, on disk, and how entries get in.

Imitates `daemon.replica`, in its order: our own entry is persisted, then applied; a peer's is
checked by applying it, then persisted before the peer is answered.
"""

import contextlib
from collections.abc import Callable, Sequence
from functools import lru_cache

from jupiterd.cluster.facts.facts import Fact
from jupiterd.cluster.ledger.ledger import Entry, EntryWriter, Ledger, compose, parse, seal
from jupiterd.cluster.ledger.snapshot import compose_snapshot, seal_snapshot
from jupiterd.cluster.membership.clones import CloneWatch
from jupiterd.errors import CorruptLedgerError, DiskFullError, JupiterError
from jupiterd.ids import ClusterId, NodeId
from tests.simulation.node.disk import Content, Disk
from tests.simulation.node.signing import add_verified, check_signed, sign, verified_snapshot

CLUSTER = ClusterId("c" * 32)
KEPT_ENTRIES = 5

parse_once = lru_cache(maxsize=4096)(parse)
"""The same bytes reach every node; what they say never changes."""


def load(content: Content) -> Ledger:
    """Return the ledger that lies on a disk."""
    ledger = Ledger(CLUSTER)
    if content.snapshot:
        ledger.adopt(verified_snapshot(ledger, content.snapshot))
    for raw in content.entries:
        add_verified(ledger, parse_once(raw))
    return ledger


class Replica:
    """The entries one process holds, and its writer."""

    def __init__(self, node: NodeId, disk: Disk, draw_name: Callable[[], str]) -> None:
        self._node = node
        self._disk = disk
        self._unsaved: list[bytes] = []
        self.clones = CloneWatch()
        self.on_clone: Callable[[], None] = lambda: None
        self.known_term: Callable[[], int] = lambda: 0
        self._owes_snapshot = False
        """What was adopted from a peer's snapshot isn't on disk yet."""
        self.ledger = load(disk.content)
        self.writer = EntryWriter(node, self.writer_name(draw_name))

    def writer_name(self, draw_name: Callable[[], str]) -> str:
        """Return a name that no start of any daemon has had."""
        return draw_name()

    def append(self, term: int, facts: Sequence[Fact]) -> Entry:
        """Write an entry of our own: sign, persist, apply."""
        index, previous = self.ledger.chain_end(self.writer)
        body = compose(CLUSTER, term, self.writer, index, previous, facts)
        entry = parse_once(seal(body, sign(self._node, body)))
        self._save(entry.raw)
        self.ledger.add(entry)
        return entry

    def absorb(self, raws: Sequence[bytes]) -> int:
        """Take in entries of a peer, leaving bad ones out; return how many were new.

        Raises:
            DiskFullError: they are in memory alone.
        """
        new = [entry.raw for raw in raws if (entry := self._admit(raw)) is not None]
        self._unsaved += new
        self._save()
        return len(new)

    def adopt(self, raw: bytes) -> None:
        """Take in a peer's snapshot beside what is held, unless it is bad or brings nothing.

        Raises:
            DiskFullError: it is in memory alone.
        """
        tips, own = self.ledger.tips(), str(self.writer)
        try:
            snapshot = verified_snapshot(self.ledger, raw)
        except CorruptLedgerError:
            return
        new = {writer for writer, tip in snapshot.tips.items() if tip.index > tips.get(writer, 0)}
        if new and own not in new and self._is_near(snapshot.terms):
            self.ledger.adopt(snapshot)
            self._owes_snapshot = True
            self._save()

    def _is_near(self, terms: frozenset[int]) -> bool:
        try:
            self.ledger.check_near(self.known_term(), *terms)
        except CorruptLedgerError:
            return False
        return True

    def snapshot(self) -> bytes:
        """Return our own sum of everything we hold."""
        ledger = self.ledger
        body = compose_snapshot(CLUSTER, self._node, ledger.last(), list(ledger.state.placed()))
        return seal_snapshot(body, sign(self._node, body))

    def compact(self) -> None:
        """Hold the newest entries alone beside a snapshot of ours, if there is room for it."""
        with contextlib.suppress(DiskFullError):
            self._sum_up()

    def _sum_up(self) -> None:
        ledger = self.ledger
        kept = [entry.raw for entry in ledger.entries()[-KEPT_ENTRIES:]]
        self._disk.compact(self.snapshot(), kept)
        self._unsaved.clear()
        self._owes_snapshot = False
        ledger.forget(ledger.oldest(ledger.entry_count - KEPT_ENTRIES))

    def save_again(self) -> None:
        """Try once more to bring to disk what found no room there."""
        if not self._disk.is_full:
            self._save()

    def _save(self, *raws: bytes) -> None:
        if self._owes_snapshot:
            self._sum_up()
        waiting = [*self._unsaved, *raws]
        if waiting:
            self._disk.append(waiting)
            self._unsaved.clear()

    def _check_ours(self, entry: Entry) -> None:
        """Look whether a clone has written in our name; what it wrote isn't taken."""
        check_signed(self.ledger, entry)
        if not self.clones.is_ours(self.ledger, self.writer, entry):
            self.on_clone()

    def _admit(self, raw: bytes) -> Entry | None:
        try:
            entry = parse_once(raw)
            if entry.writer == self.writer:
                self._check_ours(entry)
                return None
            if entry.index <= self.ledger.tips().get(str(entry.writer), 0):
                return None
            self.ledger.check_near(self.known_term(), entry.term)
            return entry if add_verified(self.ledger, entry) else None
        except JupiterError:
            return None
