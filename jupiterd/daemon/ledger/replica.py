"""This node's copy of the ledger: in memory, on disk, and how entries get in.

Owns the order in which things happen to an entry: our own is persisted, then applied; one of a peer
is checked by applying it, then persisted before the peer is answered: no exchange succeeds while an
entry isn't on disk. Doesn't know who leads or who the peers are.
"""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeVar, cast

from jupiterd.cluster.facts.facts import Fact
from jupiterd.cluster.ledger.chain import Tip
from jupiterd.cluster.ledger.ledger import Entry, EntryWriter, Ledger, compose, parse, seal
from jupiterd.cluster.ledger.snapshot import Placed, compose_snapshot, parse_snapshot, seal_snapshot
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.membership.clones import CloneWatch
from jupiterd.cluster.membership.cluster_merge import owed
from jupiterd.daemon.ledger.signature_check import (
    add_verified,
    adopt,
    check_signed,
    verified_snapshot,
    witness_verified,
)
from jupiterd.daemon.ledger.snapshot_transfer import FetchedSnapshot
from jupiterd.errors import ConflictError, CorruptLedgerError, JupiterError, NoLeaderError
from jupiterd.gc_pause import collector_paused
from jupiterd.ids import ClusterId, NodeId
from jupiterd.net.identity import Identity
from jupiterd.store.ledger_file import LedgerFile

log = logging.getLogger(__name__)

Found = TypeVar("Found")

MAX_ENTRIES = 1000
"""The newest entries stay, for peers that were away a while; a snapshot sums up the rest."""

MAX_ENTRIES_WITHOUT_YES = 4000
"""What a member sums up to whom nobody has said yes is taken by nobody, so it holds more."""


LEFT_KEY: Final = "left"
"""The named value that holds which clusters people had this machine leave."""


class Replica:
    """The set of entries this node holds; one writer uuid for each start of the daemon."""

    def __init__(self, identity: Identity, file: LedgerFile) -> None:
        self._identity = identity
        self._file = file
        self._writing = asyncio.Lock()
        self._changed = asyncio.Event()
        self.saved_tips: dict[str, int] = {}
        """How far each writer's entries are on this node's disk: what peers may know of it."""
        self._unsaved: list[bytes] = []
        """Entries of peers in memory and not on disk yet; until they are, no peer is answered."""
        self.trouble = ""
        """Why the last entries aren't on this node's disk; empty where they are."""
        self.version = 0
        self._derived: dict[Callable[[State], object], object] = {}
        """What was worked out of the state of this version, by what did so."""
        self.clones = CloneWatch()
        """Whether another daemon uses this node's key."""
        self.on_clone: Callable[[], None] = lambda: None
        self.on_change: Callable[[], None] = lambda: None
        """Called on the loop as soon as the ledger has changed, before anybody who waits for it."""
        self.known_term: Callable[[], int] = lambda: 0
        """The highest term that this node knows of otherwise than by entries."""
        cluster = file.get("cluster")
        if cluster is None:
            cluster = secrets.token_hex(16)
            file.set("cluster", cluster)
        self._snapshot_author: NodeId | None = None
        """Who made the snapshot on disk, if there is one; peers get one of our own alone."""
        self._owes_snapshot = False
        """What was adopted from a peer's snapshot isn't on disk yet."""
        self._refused: dict[NodeId, Mapping[str, Tip]] = {}
        """How far snapshots go that weren't taken, by senders to whom nobody has said yes."""
        self._take(self._loaded(ClusterId(cluster)))

    @property
    def ledger(self) -> Ledger:
        """The entries; replaced as a whole when this node joins another cluster."""
        return self._ledger

    @property
    def identity(self) -> Identity:
        """What this node proves itself with."""
        return self._identity

    @property
    def node(self) -> NodeId:
        """The node whose replica this is."""
        return self._identity.node_id

    @property
    def state(self) -> State:
        """What the entries add up to."""
        return self._ledger.state

    @property
    def cluster(self) -> ClusterId:
        """The cluster this node is in."""
        return self._ledger.cluster

    def derived(self, work_out: Callable[[State], Found]) -> Found:
        """Return what this works out of the state; the same once more until the ledger changes.

        It is for what takes long with thousands of facts; nobody may change what is returned.
        """
        if work_out not in self._derived:
            self._derived[work_out] = work_out(self.state)
        return cast("Found", self._derived[work_out])

    async def changed_since(self, version: int) -> int:
        """Wait until `version` is out of date, and return the new one."""
        while self.version == version:
            await self._changed.wait()
        return self.version

    async def append(self, term: int, facts: Sequence[Fact]) -> Entry:
        """Write an entry of our own: sign, persist, apply. Only the leader calls this.

        Once begun it is finished, even if the caller is cancelled: an entry that is on disk and not
        in memory would fork our own chain. So nothing is persisted that can't be applied.

        Raises:
            CorruptLedgerError: this node isn't admitted, as before its cluster is founded.
            NoLeaderError: this node has moved to another cluster since the request.
        """
        return await asyncio.shield(self._append(self._ledger, term, facts))

    async def _append(self, meant: Ledger, term: int, facts: Sequence[Fact]) -> Entry:
        async with self._writing:
            if meant is not self._ledger:
                raise NoLeaderError("this node has moved to another cluster")
            index, previous = self._ledger.chain_end(self._writer)
            body = compose(self.cluster, term, self._writer, index, previous, tuple(facts))
            entry = parse(seal(body, self._identity.sign(body)))
            self._ledger.check_entry(entry)
            await self._save(entry.raw)
            self._ledger.add(entry)
            self.saved_tips = self._ledger.tips()
        self._notify()
        return entry

    async def absorb(self, raws: Sequence[bytes]) -> int:
        """Take in entries that a peer sent, in their order; return how many were new.

        A bad one is left out, and so is what its writer wrote behind it: that hangs on it. Once
        begun it is finished, as `append` is.
        """
        return await asyncio.shield(self._absorb(raws))

    async def _absorb(self, raws: Sequence[bytes]) -> int:
        async with self._writing:
            new = [entry for raw in raws if (entry := self._admit(raw)) is not None]
            self._unsaved += [entry.raw for entry in new]
            try:
                await self._save()
            finally:
                if new:
                    self._notify()
        return len(new)

    async def witness(self, raws: Sequence[bytes]) -> int:
        """Take in whom these entries admit and remove, for all that their chains aren't here.

        They prove themselves, and go on to others from here; return how many were new.
        """
        return await asyncio.shield(self._witness(raws)) if raws else 0

    async def _witness(self, raws: Sequence[bytes]) -> int:
        async with self._writing:
            new = [raw for raw in raws if self._testifies(raw)]
            if new:
                self._notify()
                await asyncio.to_thread(self._file.append_roster, new)
        return len(new)

    async def save_again(self) -> None:
        """Try once more to bring to disk what found no room there."""
        with contextlib.suppress(JupiterError):
            await self.absorb(())

    async def _save(self, *raws: bytes) -> None:
        """Bring these to disk, and before them what found no room there the last time."""
        if not (raws or self._unsaved or self._owes_snapshot or self.trouble):
            return  # everything in memory is on disk
        try:
            if self._owes_snapshot:
                await self._sum_up()
            await asyncio.to_thread(self._file.append, [*self._unsaved, *raws])
        except JupiterError as error:
            self.trouble = error.message
            raise
        self.trouble = ""
        self._unsaved.clear()
        self.saved_tips = self._ledger.tips()

    async def move_to(self, fetched: FetchedSnapshot) -> None:
        """Replace this node's ledger by another cluster's.

        Raises:
            CorruptLedgerError: it doesn't have us as a member.
            ConflictError: something in the ledger so far would be lost.
        """
        ledger = fetched.ledger
        if self._identity.node_id not in ledger.state.members:
            cluster = ledger.cluster[:8]
            raise CorruptLedgerError(f"the ledger of cluster {cluster} doesn't have this node")
        async with self._writing:
            if not self.state.blank and owed(ledger, self._ledger):
                raise ConflictError("this node's cluster has work of its own by now")
            await self._replace(fetched)
        self._notify()

    @property
    def left(self) -> frozenset[str]:
        """The clusters that people had this machine leave, by their ids."""
        return frozenset((self._file.get(LEFT_KEY) or "").split())

    async def start_new_cluster(self, found: Callable[[Ledger], FetchedSnapshot]) -> None:
        """Replace this node's ledger by that of a new cluster, which `found` derives from it.

        Once begun it is finished, as `append` is; nothing is written in between.
        """
        await asyncio.shield(self._start_new_cluster(found))

    async def _start_new_cluster(self, found: Callable[[Ledger], FetchedSnapshot]) -> None:
        async with self._writing:
            left = " ".join(sorted({*self.left, self._ledger.cluster}))
            await asyncio.to_thread(self._file.set, LEFT_KEY, left)
            await self._replace(await asyncio.to_thread(found, self._ledger))
        self._notify()

    async def _replace(self, fetched: FetchedSnapshot) -> None:
        """Hold another cluster's ledger, on disk and in memory; the caller writes alone."""
        ledger = fetched.ledger
        await asyncio.to_thread(
            self._file.replace,
            ledger.cluster,
            fetched.entries,
            fetched.snapshot,
            [entry.raw for entry in ledger.roster_entries()],
        )
        self._unsaved.clear()
        self._owes_snapshot = False
        self._refused.clear()
        self._snapshot_author = fetched.sender if fetched.snapshot else None
        self._take(ledger)

    async def adopt(self, raw: bytes, sender: NodeId) -> None:
        """Merge a peer's snapshot into the ledger: the peer no longer has every entry.

        Once begun it is finished, as `append` is.

        Raises:
            CorruptLedgerError: it isn't the sender's, or doesn't fit; nothing has changed then.
        """
        await asyncio.shield(self._adopt(raw, sender))

    async def _adopt(self, raw: bytes, sender: NodeId) -> None:
        async with self._writing:
            snapshot = await asyncio.to_thread(verified_snapshot, self._ledger, raw, sender)
            if sender not in self.state.roster.trusted:  # it sums up by its word what others signed
                self._refused[sender] = snapshot.tips
                raise CorruptLedgerError(
                    "a ledger snapshot by a member whom nobody has said yes to"
                )
            ours, tips = str(self._writer), self._ledger.tips()
            if ours in snapshot.tips and snapshot.tips[ours].index > tips.get(ours, 0):
                raise CorruptLedgerError("a ledger snapshot holds entries that we haven't written")
            if all(tip.index <= tips.get(writer, 0) for writer, tip in snapshot.tips.items()):
                return
            self._ledger.check_near(self.known_term(), *snapshot.terms)
            adopt(self._ledger, snapshot)
            self._owes_snapshot = True
            await asyncio.sleep(0)  # with a long history each of the two holds the loop a while
            try:
                await self._save()
            finally:
                self._notify()

    def behind(self) -> tuple[NodeId, ...]:
        """Return who sums up entries that aren't here, and may not bring them: it walked in."""
        roster, tips = self.state.roster, self._ledger.tips()
        return tuple(
            sender
            for sender, refused in self._refused.items()
            if sender in roster.members
            and sender not in roster.trusted
            and any(tip.index > tips.get(writer, 0) for writer, tip in refused.items())
        )

    async def snapshot(self) -> bytes:
        """Return our snapshot for a peer; empty where every entry is still stored by itself."""
        if not self._ledger.has_forgotten({}):
            return b""
        if self._snapshot_author != self._identity.node_id:
            await self.compact()
        return await asyncio.to_thread(self._file.load_snapshot) or b""

    async def keep_compact(self) -> None:
        """Sum up the ledger whenever it has grown, for ever."""
        version = -1
        while True:
            version = await self.changed_since(version)
            if self._ledger.entry_count >= 2 * self._most_entries():
                with _logged_if_bad():
                    await self.compact()

    def _most_entries(self) -> int:
        is_trusted = self.node in self.state.roster.trusted
        return MAX_ENTRIES if is_trusted else MAX_ENTRIES_WITHOUT_YES

    async def compact(self) -> None:
        """Sum up the ledger in a snapshot of ours, and store only the newest entries besides it.

        Once begun it is finished, as `append` is. Nothing is written meanwhile: what came in
        between would be neither in the snapshot nor behind it.
        """
        await asyncio.shield(self._compact())

    async def _compact(self) -> None:
        async with self._writing:
            await self._sum_up()
        self._notify()

    async def _sum_up(self) -> None:
        """Replace what is on disk; the caller writes alone."""
        ledger = self._ledger
        facts = list(ledger.state.placed())
        raw = await asyncio.to_thread(self._summed_up, ledger.cluster, ledger.last(), facts)
        most = self._most_entries()
        forgotten = ledger.oldest(ledger.entry_count - most)
        newest = [entry.raw for entry in ledger.entries()[-most:]]
        roster = [entry.raw for entry in ledger.roster_entries()]
        await asyncio.to_thread(self._file.compact, raw, newest, roster)
        self._unsaved.clear()
        self._owes_snapshot = False
        self._snapshot_author = self._identity.node_id
        self.saved_tips = ledger.tips()
        ledger.forget(forgotten)
        log.info("ledger_summed_up", extra={"facts": len(facts), "size_bytes": len(raw)})

    def _summed_up(
        self, cluster: ClusterId, tips: Mapping[str, Tip], facts: Sequence[Placed]
    ) -> bytes:
        """Return a signed snapshot that can be read back: entries are dropped for its sake."""
        body = compose_snapshot(cluster, self._identity.node_id, tips, facts)
        raw = seal_snapshot(body, self._identity.sign(body))
        with collector_paused():
            again = parse_snapshot(raw)
        if (again.tips, len(again.facts)) != (tips, len(facts)):
            raise CorruptLedgerError("the ledger can't be summed up; its entries are kept")
        return raw

    async def in_short(self) -> bytes:
        """Return a snapshot of all that is in force here, whatever entries are still stored."""
        ledger = self._ledger
        facts = list(ledger.state.placed())
        return await asyncio.to_thread(self._summed_up, ledger.cluster, ledger.last(), facts)

    def lacking(self, have: Mapping[str, int], limit_bytes: int) -> tuple[list[bytes], bool]:
        """Return the wire form of entries that a peer lacks, and whether more remain."""
        entries, more = self._ledger.lacking(have, limit_bytes)
        return [entry.raw for entry in entries], more

    def roster_lacking(self, have: Mapping[str, int]) -> list[bytes]:
        """Return entries that admit and remove, which a peer lacks and `lacking` can't bring."""
        return [entry.raw for entry in self._ledger.roster_lacking(have)]

    def _loaded(self, cluster: ClusterId) -> Ledger:
        """Return what is on disk; a bad entry is left out, and so is what hangs on it.

        Raises:
            CorruptLedgerError: the snapshot is damaged, and what it sums up is nowhere else here.
        """
        ledger = Ledger(cluster)
        raw = self._file.load_snapshot()
        if raw is not None:
            self._snapshot_author = self._restored(ledger, raw)
        entries = [(entry, add_verified) for entry in _readable(self._file.load())]
        roster = [(entry, witness_verified) for entry in _readable(self._file.load_roster())]
        for entry, take_in in sorted(entries + roster, key=lambda pair: pair[0].order):
            with _logged_if_bad():
                take_in(ledger, entry)
        return ledger

    @staticmethod
    def _restored(ledger: Ledger, raw: bytes) -> NodeId:
        try:
            snapshot = verified_snapshot(ledger, raw)
        except CorruptLedgerError as error:
            raise CorruptLedgerError(
                f"the ledger on disk can't be read: {error.message}",
                "run: jupiterd heal; else start with a new state folder and join again: "
                "jupiterd --state-dir DIR",
            ) from error
        adopt(ledger, snapshot)
        return snapshot.author

    def _take(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._writer = EntryWriter(self._identity.node_id, secrets.token_hex(8))
        self.saved_tips = ledger.tips()

    def _admit(self, raw: bytes) -> Entry | None:
        with _logged_if_bad():
            entry = parse(raw)
            known = self._ledger.tips().get(str(entry.writer), 0)
            if entry.writer == self._writer:
                self._check_ours(entry)
            elif entry.index > known:
                self._ledger.check_near(self.known_term(), entry.term)
                return entry if add_verified(self._ledger, entry) else None
        return None

    def _check_ours(self, entry: Entry) -> None:
        """Raise CorruptLedgerError where a clone has written in our name, and let it be known."""
        check_signed(self._ledger, entry)
        if not self.clones.is_ours(self._ledger, self._writer, entry):
            log.error("clone_wrote", extra={"index": entry.index})
            self.on_clone()
            raise CorruptLedgerError("an entry of ours that we haven't written")

    def _testifies(self, raw: bytes) -> bool:
        with _logged_if_bad():
            entry = parse(raw)
            if entry.writer != self._writer:
                self._ledger.check_near(self.known_term(), entry.term)
                return witness_verified(self._ledger, entry)
        return False

    def _notify(self) -> None:
        self.version += 1
        self._derived.clear()
        self.on_change()
        self._changed.set()
        self._changed = asyncio.Event()


def _readable(raws: Sequence[bytes]) -> Iterator[Entry]:
    for raw in raws:
        with _logged_if_bad():
            yield parse(raw)


@contextlib.contextmanager
def _logged_if_bad():  # noqa: ANN202 - a context manager
    try:
        yield
    except JupiterError as error:
        log.warning("ledger_entry_refused", extra={"reason": error.message})
