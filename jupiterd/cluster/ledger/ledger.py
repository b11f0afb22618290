"""The set of entries that one node holds of one cluster, and what they add up to.

Owns union, the head and what a peer lacks. Doesn't store, sign or verify anything.

What the shell does with an entry that arrives, in this order:
1. `parse` its bytes;
2. verify the signature of `entry.body` with `certificate_of(entry)`, whose key must hash to
   `entry.writer.node`;
3. `add` it, and if that says True
4. persist `entry.raw` before anything is acknowledged.

Who is admitted and removed may be known of entries whose chain isn't here, from the roster book of
a peer: `witness` takes such an entry in. It counts as a part of the ledger until the chain comes.
"""

import heapq
from collections.abc import Iterator, Mapping
from operator import attrgetter

from blake3 import blake3

from jupiterd.cluster.facts.facts import ClusterFounded, NodeAdmitted
from jupiterd.cluster.ledger.chain import NOTHING, Chain, Tip
from jupiterd.cluster.ledger.entry import MAX_ENTRY_BYTES, Entry, EntryWriter, compose, parse, seal
from jupiterd.cluster.ledger.roster_book import RosterBook, roster_facts
from jupiterd.cluster.ledger.snapshot import LedgerSnapshot
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.values.bounds import is_near
from jupiterd.errors import CorruptLedgerError
from jupiterd.ids import ClusterId, NodeId, short

__all__ = ["MAX_ENTRY_BYTES", "Entry", "EntryWriter", "Ledger", "compose", "parse", "seal"]


class Ledger:
    """Entries of one cluster, each writer's in a chain, and the state folded from them."""

    def __init__(self, cluster: ClusterId) -> None:
        self.cluster = cluster
        self._chains: dict[str, Chain] = {}
        self._state = State()
        self._book = RosterBook()
        self._head: str | None = None

    @property
    def state(self) -> State:
        """What is agreed, as far as this node knows; changed by `add` and `adopt` alone."""
        return self._state

    def __len__(self) -> int:
        """Count every entry, those summed up in snapshots included."""
        return sum(chain.tip.index for chain in self._chains.values())

    @property
    def entry_count(self) -> int:
        """How many entries are held one by one."""
        return sum(chain.entry_count for chain in self._chains.values())

    def add(self, entry: Entry) -> bool:
        """Take in one entry whose signature was verified; say whether it is new.

        Raises:
            CorruptLedgerError: another cluster's, by an author not yet admitted, or its chain is
                broken: the entry before it is missing or another one, its term goes back, or
                another entry stands at its index. Nothing has changed then.
        """
        if not self.check_entry(entry):
            return False
        for fact in entry.facts:
            self._state.apply(fact, entry.order)
        self._chains.setdefault(str(entry.writer), Chain()).append(entry)
        self._book.keep(entry)
        self._head = None
        return True

    def check_entry(self, entry: Entry) -> bool:
        """Say whether an entry would be new, and raise what `add` would; nothing changes."""
        if entry.cluster != self.cluster:
            raise CorruptLedgerError(f"an entry of another cluster, {short(entry.cluster)}")
        tip = self._tip(entry.writer)
        if entry.index <= tip.index:
            self._check_same(entry.writer, entry.index, entry.hash)
            return False
        self._check_chain(entry, tip)
        self._check_author(entry)
        return True

    def witness(self, entry: Entry) -> bool:
        """Take in whom an entry admits and removes, without its chain; say whether that is new.

        Its signature was verified. Of an entry that is summed up here it is kept for others.

        Raises:
            CorruptLedgerError: another cluster's, by an author not yet admitted, or another entry
                than the one that is known in its place. Nothing has changed then.
        """
        if entry.cluster != self.cluster:
            raise CorruptLedgerError(f"an entry of another cluster, {short(entry.cluster)}")
        if entry.hash in self._book:
            return False
        if entry.index <= self._tip(entry.writer).index:
            self._check_known(entry)
        else:
            self._check_author(entry)
            for fact in roster_facts(entry):
                self._state.apply(fact, entry.order)
        self._book.keep(entry)
        self._head = None
        return entry.hash in self._book

    def adopt(self, snapshot: LedgerSnapshot) -> None:
        """Take in what a snapshot sums up, whose signature was verified; ours stays as well.

        Raises:
            CorruptLedgerError: as `check` does. Nothing has changed then.
        """
        self.check(snapshot)
        for writer, tip in snapshot.tips.items():
            chain = self._chains.setdefault(writer, Chain())
            if tip.index > chain.tip.index:
                chain.skip_to(tip)
        self._head = None
        for order, fact in snapshot.facts:
            self._state.apply(fact, order)

    def check(self, snapshot: LedgerSnapshot) -> None:
        """Raise CorruptLedgerError if it is another cluster's, or of another history than ours."""
        if snapshot.cluster != self.cluster:
            raise CorruptLedgerError(f"a snapshot of another cluster, {short(snapshot.cluster)}")
        for writer, tip in snapshot.tips.items():
            self._check_same(EntryWriter.parse(writer), tip.index, tip.hash)

    def forget(self, tips: Mapping[str, int]) -> None:
        """Hold entries up to these no longer one by one: a snapshot sums them up."""
        for writer, index in tips.items():
            if writer in self._chains:
                self._chains[writer].forget(index)

    def oldest(self, count: int) -> dict[str, int]:
        """Return how far each writer's entries go among the `count` oldest that are held."""
        return {str(entry.writer): entry.index for entry in self.entries()[: max(count, 0)]}

    def last(self) -> dict[str, Tip]:
        """Return the last entry of each writer."""
        return {writer: chain.tip for writer, chain in self._chains.items()}

    def certificate_of(self, entry: Entry) -> bytes | None:
        """Return the author's certificate (PEM), or None where the author isn't admitted.

        An empty ledger takes it from the founder's first entry itself.
        """
        member = self._state.roster.known(entry.writer.node)  # removed ones have written too
        if member is not None:
            return member.certificate_pem
        admission = self._founding_admission(entry)
        return admission.certificate_pem if admission else None

    def tips(self) -> dict[str, int]:
        """Return how many entries of each writer are here: the vector that peers exchange."""
        return {writer: chain.tip.index for writer, chain in self._chains.items()}

    def tips_of(self, node: NodeId) -> dict[str, int]:
        """Return how far each of a node's ledgers is known here."""
        return {
            writer.partition("/")[2]: index
            for writer, index in self.tips().items()
            if writer.startswith(f"{node}/")
        }

    def chain_end(self, writer: EntryWriter) -> tuple[int, str]:
        """Return the index and the previous hash that the writer's next entry must carry."""
        tip = self._tip(writer)
        return tip.index + 1, tip.hash

    def head(self) -> str:
        """Return BLAKE3 of the sorted writer tips with their hashes: equal heads, equal ledgers.

        What was witnessed counts as well for as long as its chain isn't here.
        """
        if self._head is None:
            tips = sorted(
                f"{writer} {tip.index} {tip.hash}\n" for writer, tip in self.last().items()
            )
            witnessed = [f"{entry.hash}\n" for entry in self._book.beyond(self.tips())]
            self._head = blake3("".join(tips + witnessed).encode()).hexdigest()
        return self._head

    def is_twin(self, entry: Entry) -> bool:
        """Say whether another entry of the same writer is held at its index."""
        return self._hash_at(entry.writer, entry.index) not in (None, entry.hash)

    def roster_entries(self) -> list[Entry]:
        """Return the entries that admit and remove, as far as they are kept one by one."""
        return self._book.beyond({})

    def roster_lacking(self, have: Mapping[str, int]) -> list[Entry]:
        """Return entries that admit and remove, which a peer lacks and `lacking` can't bring."""
        own = {} if self.has_forgotten(have) else self.tips()
        return [e for e in self._book.beyond(own) if e.index > have.get(str(e.writer), 0)]

    def has_forgotten(self, have: Mapping[str, int]) -> bool:
        """Say whether a peer with the vector `have` lacks entries that only a snapshot brings."""
        return any(
            max(have.get(writer, 0), 0) < chain.base.index for writer, chain in self._chains.items()
        )

    def lacking(self, have: Mapping[str, int], limit_bytes: int) -> tuple[list[Entry], bool]:
        """Return entries that a peer with the vector `have` lacks, and whether more remain.

        They come in the total order, so that they can be added one by one, and are at most
        `limit_bytes` on the wire together, but at least one where any is lacking. Where
        `has_forgotten(have)`, what is held hangs on what isn't: only a snapshot helps.
        """
        if self.has_forgotten(have):
            return [], False
        chosen: list[Entry] = []
        size_bytes = 0
        for entry in self._merged(have):
            size_bytes += len(entry.raw)
            if chosen and size_bytes > limit_bytes:
                return chosen, True
            chosen.append(entry)
        return chosen, False

    def highest_term(self, besides: NodeId | None = None) -> int:
        """Return the highest term of any member's entry, but for this one's; 0 where there is none.

        What somebody wrote who was removed drives nobody's term any more.
        """
        members = self._state.members.keys() - {besides}
        found = (c.tip.term for w, c in self._chains.items() if w.partition("/")[0] in members)
        return max(found, default=0)

    def check_near(self, known: int, *terms: int) -> None:
        """Raise CorruptLedgerError where a term of entries lies far above all that is known.

        known: the highest one that this node knows beside its entries.
        """
        highest = max([known, *(chain.tip.term for chain in self._chains.values())])
        for term in sorted(terms):
            if not is_near(term, highest):
                raise CorruptLedgerError(f"an entry of term {term}, far above {highest}")
            highest = max(highest, term)

    def entries(self) -> list[Entry]:
        """Return every entry that is held one by one, in the total order."""
        held = (entry for chain in self._chains.values() for entry in chain.after(0))
        return sorted(held, key=attrgetter("order"))

    def _tip(self, writer: EntryWriter) -> Tip:
        chain = self._chains.get(str(writer))
        return NOTHING if chain is None else chain.tip

    def _merged(self, have: Mapping[str, int]) -> Iterator[Entry]:
        tails = (chain.after(have.get(writer, 0)) for writer, chain in self._chains.items())
        found = [tail for tail in tails if tail]
        if len(found) == 1:
            return iter(found[0])
        return heapq.merge(*found, key=attrgetter("order"))  # a chain's terms never go back

    def _hash_at(self, writer: EntryWriter, index: int) -> str | None:
        chain = self._chains.get(str(writer))
        return None if chain is None else chain.hash_at(index)

    def _check_same(self, writer: EntryWriter, index: int, digest: str) -> None:
        """Refuse another entry in the place of one that is known; forgotten ones aren't."""
        if self._hash_at(writer, index) not in (None, digest):
            raise CorruptLedgerError(
                f"node {short(writer.node)} wrote two different entries {index}",
                "two machines use one key: delete key.pem on one of them and start it again",
            )

    def _check_known(self, entry: Entry) -> None:
        """Refuse what isn't part of what is summed up here, for all that can be seen of it."""
        self._check_same(entry.writer, entry.index, entry.hash)
        roster = self._state.roster
        if not all(roster.has(fact, entry.order) for fact in roster_facts(entry)):
            raise CorruptLedgerError(f"entry {entry.hash[:8]} isn't the one that is known here")

    def _check_chain(self, entry: Entry, tip: Tip) -> None:
        if entry.index > tip.index + 1:
            raise _broken(entry, f"came before entry {tip.index + 1}")
        if tip.index and entry.previous != tip.hash:
            raise _broken(entry, "doesn't follow the entry held before it")
        if entry.term < tip.term:
            raise _broken(entry, f"goes back to term {entry.term}")

    def _check_author(self, entry: Entry) -> None:
        """Refuse authors who weren't admitted by an entry that sorts before theirs.

        So whoever adds entries in the total order meets every admission before it is needed.
        """
        admitted_at = self._state.admitted_at(entry.writer.node)
        if admitted_at is not None and admitted_at < entry.order:
            return
        if self._founding_admission(entry) is None:
            raise CorruptLedgerError(
                f"node {short(entry.writer.node)} wrote an entry before it was admitted"
            )

    def _founding_admission(self, entry: Entry) -> NodeAdmitted | None:
        """Only an empty ledger can be founded: else anybody could admit itself by a second one."""
        if self._chains or entry.index != 1 or not isinstance(entry.facts[0], ClusterFounded):
            return None
        admissions = (fact for fact in entry.facts if isinstance(fact, NodeAdmitted))
        return next((fact for fact in admissions if fact.node == entry.writer.node), None)


def _broken(entry: Entry, how: str) -> CorruptLedgerError:
    return CorruptLedgerError(f"entry {entry.index} of node {short(entry.writer.node)} {how}")
