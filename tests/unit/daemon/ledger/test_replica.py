"""This node's copy of the ledger, with real keys and a real file."""

import asyncio
import logging
from collections.abc import Generator
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import (
    ClusterFounded,
    ClusterRenamed,
    NodeAdmitted,
    PairingWindowSet,
)
from jupiterd.cluster.ledger.ledger import Entry, EntryWriter, compose, parse, seal
from jupiterd.cluster.ledger.snapshot import parse_snapshot
from jupiterd.cluster.ledger.state import State
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.errors import CorruptLedgerError, DiskFullError, NoLeaderError
from jupiterd.net.identity import Identity
from jupiterd.store.ledger_file import LedgerFile
from tests.support.daemon.two_nodes import whole_ledger

MEGABYTE = 1 << 20


class Disk:
    """One node's folder: its key and its ledger file, which may be opened again."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.identity = Identity.load_or_create(folder / "key.pem")
        self._folder = folder
        self._files: list[LedgerFile] = []

    def replica(self) -> Replica:
        return Replica(self.identity, self.file())

    def file(self) -> LedgerFile:
        self.close()
        self._files.append(LedgerFile(self._folder / "ledger.db"))
        return self._files[-1]

    def close(self) -> None:
        while self._files:
            self._files.pop().close()


@pytest.fixture
def ours(tmp_path: Path) -> Generator[Disk]:
    disk = Disk(tmp_path / "ours")
    yield disk
    disk.close()


@pytest.fixture
def theirs(tmp_path: Path) -> Generator[Disk]:
    disk = Disk(tmp_path / "theirs")
    yield disk
    disk.close()


def admitted(disk: Disk) -> NodeAdmitted:
    identity = disk.identity
    return NodeAdmitted(identity.node_id, "a name", identity.certificate_pem, "window open")


async def founded(disk: Disk, *others: Disk) -> Replica:
    replica = disk.replica()
    await replica.append(1, [ClusterFounded("home"), *map(admitted, (disk, *others))])
    return replica


def raws(replica: Replica) -> list[bytes]:
    return replica.lacking({}, MEGABYTE)[0]


async def test_what_was_appended_is_signed_and_counts(ours: Disk) -> None:
    replica = await founded(ours)
    entry = await replica.append(1, [PairingWindowSet(is_open=False, edit=1)])
    assert (entry.index, entry.writer.node) == (2, ours.identity.node_id)
    assert not replica.state.window_open
    assert list(replica.state.members) == [ours.identity.node_id]


async def test_a_ledger_survives_the_end_of_the_process(ours: Disk) -> None:
    before = await founded(ours)
    await before.append(1, [PairingWindowSet(is_open=False, edit=1)])
    after = ours.replica()
    assert after.cluster == before.cluster
    assert after.ledger.head() == before.ledger.head()
    assert after.state == before.state


async def test_each_start_writes_under_a_name_of_its_own(ours: Disk) -> None:
    first = await (await founded(ours)).append(1, [PairingWindowSet(is_open=False, edit=1)])
    second = await ours.replica().append(2, [PairingWindowSet(is_open=True, edit=2)])
    assert first.writer.node == second.writer.node
    assert first.writer.ledger != second.writer.ledger
    assert second.index == 1


async def test_entries_of_a_peer_are_absorbed_once_and_kept(ours: Disk, theirs: Disk) -> None:
    leader = await founded(theirs, ours)
    follower = ours.replica()
    await follower.move_to(whole_ledger(leader))
    entry = await leader.append(1, [PairingWindowSet(is_open=False, edit=1)])
    assert await follower.absorb([entry.raw]) == 1
    assert await follower.absorb([entry.raw]) == 0
    assert follower.ledger.head() == leader.ledger.head()
    assert ours.replica().ledger.head() == leader.ledger.head()


def forged(replica: Replica, author: Identity, signer: Identity) -> Entry:
    """An entry that says it is of `author`, signed by somebody else."""
    writer = EntryWriter(author.node_id, "f" * 16)
    body = compose(replica.cluster, 1, writer, 1, "", (PairingWindowSet(is_open=False, edit=9),))
    return parse(seal(body, signer.sign(body)))


async def test_a_forged_signature_is_refused_and_leaves_no_trace(
    ours: Disk, theirs: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    replica = await founded(ours)
    head = replica.ledger.head()
    entry = forged(replica, author=ours.identity, signer=theirs.identity)
    with caplog.at_level(logging.WARNING):
        assert await replica.absorb([entry.raw]) == 0
    assert "ledger_entry_refused" in caplog.text
    assert replica.state.window_open
    assert ours.replica().ledger.head() == head


async def test_a_stranger_writes_nothing_even_with_a_key_of_its_own(
    ours: Disk, theirs: Disk
) -> None:
    replica = await founded(ours)
    entry = forged(replica, author=theirs.identity, signer=theirs.identity)
    assert await replica.absorb([entry.raw]) == 0
    assert replica.state.window_open


async def test_bytes_that_are_no_entry_are_left_out(ours: Disk) -> None:
    replica = await founded(ours)
    assert await replica.absorb([b"no entry", b""]) == 0


async def test_an_entry_before_its_predecessor_is_refused_and_taken_when_it_comes_in_order(
    ours: Disk, theirs: Disk
) -> None:
    leader = await founded(theirs, ours)
    follower = ours.replica()
    await follower.move_to(whole_ledger(leader))
    second = await leader.append(1, [PairingWindowSet(is_open=False, edit=1)])
    third = await leader.append(1, [PairingWindowSet(is_open=True, edit=2)])
    assert await follower.absorb([third.raw]) == 0
    assert await follower.absorb([second.raw, third.raw]) == 2
    assert follower.ledger.head() == leader.ledger.head()


async def test_moving_drops_the_blank_ledger_for_good(ours: Disk, theirs: Disk) -> None:
    blank = await founded(ours)
    old = blank.cluster
    leader = await founded(theirs, ours)
    await blank.move_to(whole_ledger(leader))
    again = ours.replica()
    assert old != again.cluster == leader.cluster
    assert set(again.state.members) == {ours.identity.node_id, theirs.identity.node_id}
    mine = await again.append(2, [PairingWindowSet(is_open=False, edit=1)])
    assert await leader.absorb([mine.raw]) == 1


async def test_nobody_moves_to_a_cluster_that_did_not_admit_them(ours: Disk, theirs: Disk) -> None:
    blank = await founded(ours)
    leader = await founded(theirs)
    with pytest.raises(CorruptLedgerError, match="doesn't have this node"):
        await blank.move_to(whole_ledger(leader))
    assert blank.cluster != leader.cluster
    assert ours.identity.node_id in blank.state.members


async def test_whoever_waits_for_news_is_woken_by_an_entry(ours: Disk) -> None:
    replica = await founded(ours)
    waiting = asyncio.ensure_future(replica.changed_since(replica.version))
    await replica.append(1, [PairingWindowSet(is_open=False, edit=1)])
    async with asyncio.timeout(5):
        assert await waiting == replica.version
        assert await replica.changed_since(-1) == replica.version


async def test_what_is_worked_out_of_the_state_is_kept_until_the_ledger_changes(
    ours: Disk, theirs: Disk
) -> None:
    replica, other = await founded(ours, theirs), theirs.replica()
    worked_out = 0

    def members(state: State) -> set[str]:
        nonlocal worked_out
        worked_out += 1
        return set(state.members)

    found = replica.derived(members)
    assert replica.derived(members) is found
    assert replica.derived(lambda state: len(state.members)) == 2
    assert worked_out == 1
    await replica.append(1, [ClusterRenamed("elsewhere", 1)])
    assert replica.derived(members) == found
    assert worked_out == 2
    assert other.derived(members) == set()
    await other.move_to(whole_ledger(replica))
    assert other.derived(members) == found


async def test_an_append_that_is_cancelled_never_forks_our_own_chain(ours: Disk) -> None:
    replica = await founded(ours)
    for edit in range(2, 6):
        task = asyncio.ensure_future(replica.append(1, [PairingWindowSet(is_open=True, edit=edit)]))
        for _ in range(edit):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await replica.append(1, [PairingWindowSet(is_open=False, edit=9)])
    assert len(replica.ledger) == 6
    assert ours.replica().ledger.head() == replica.ledger.head()


async def test_what_would_not_count_is_refused_before_it_is_on_disk(
    ours: Disk, theirs: Disk
) -> None:
    replica = ours.replica()
    with pytest.raises(CorruptLedgerError, match="before it was admitted"):
        await replica.append(1, [admitted(theirs)])
    await replica.append(1, [ClusterFounded("home"), admitted(ours)])
    assert ours.file().load() == raws(replica)


async def test_an_entry_that_found_no_room_is_saved_with_the_next_one(
    ours: Disk, theirs: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader = await founded(theirs, ours)
    replica = ours.replica()
    await replica.move_to(whole_ledger(leader))
    await leader.append(1, [PairingWindowSet(is_open=False, edit=1)])

    def full(*_: object) -> None:
        raise DiskFullError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(LedgerFile, "append", full)
        with pytest.raises(DiskFullError):
            await replica.absorb(raws(leader))
        with pytest.raises(DiskFullError):  # nothing new: still nobody may think that we have it
            await replica.absorb([])
    await leader.append(1, [PairingWindowSet(is_open=True, edit=2)])
    await replica.absorb(raws(leader))
    assert ours.replica().ledger.head() == leader.ledger.head()


async def grown(replica: Replica, entries: int, term: int = 1) -> None:
    for _ in range(entries):
        edit = replica.state.window_edit + 1
        await replica.append(term, [PairingWindowSet(is_open=bool(edit % 2), edit=edit)])


async def test_a_ledger_that_was_summed_up_is_the_same_after_a_restart(
    ours: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupiterd.daemon.ledger.replica.MAX_ENTRIES", 3)
    replica = await founded(ours)
    await grown(replica, 10)
    await replica.compact()
    await grown(replica, 2)
    again = ours.replica()
    assert replica.ledger.entry_count == 5
    assert again.ledger.head() == replica.ledger.head()
    assert again.state == replica.state
    await grown(again, 1, term=2)
    assert ours.replica().ledger.head() == again.ledger.head()


async def test_a_snapshot_of_somebody_else_than_the_sender_is_refused(
    ours: Disk, theirs: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupiterd.daemon.ledger.replica.MAX_ENTRIES", 1)
    leader = await founded(theirs, ours)
    follower = ours.replica()
    await follower.move_to(whole_ledger(leader))
    await grown(leader, 5)
    await leader.compact()
    raw = await leader.snapshot()
    with pytest.raises(CorruptLedgerError, match="of another node"):
        await follower.adopt(raw, ours.identity.node_id)
    with pytest.raises(CorruptLedgerError, match="isn't signed by a member"):
        await follower.adopt(raw[:-1] + bytes([raw[-1] ^ 1]), theirs.identity.node_id)
    assert len(follower.ledger) == 1
    await follower.adopt(raw, theirs.identity.node_id)
    assert follower.ledger.head() == leader.ledger.head() == ours.replica().ledger.head()
    assert follower.state == leader.state == ours.replica().state


async def test_a_ledger_sums_itself_up_when_it_has_grown(
    ours: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupiterd.daemon.ledger.replica.MAX_ENTRIES", 3)
    replica = await founded(ours)
    keeping = asyncio.ensure_future(replica.keep_compact())
    await grown(replica, 20)
    async with asyncio.timeout(10):
        while replica.ledger.entry_count > 6:
            await replica.changed_since(replica.version)
    keeping.cancel()
    assert len(replica.ledger) == 21
    assert ours.replica().ledger.head() == replica.ledger.head()


async def test_what_comes_while_a_ledger_is_summed_up_is_not_lost(
    ours: Disk, theirs: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupiterd.daemon.ledger.replica.MAX_ENTRIES", 2)
    leader = await founded(theirs, ours)
    follower = ours.replica()
    await follower.move_to(whole_ledger(leader))
    await follower.append(2, [ClusterRenamed("kept?", 7)])
    late = follower.lacking({}, MEGABYTE)[0][-1]
    for edit in range(1, 12):
        await leader.append(9, [PairingWindowSet(is_open=True, edit=edit)])
    await asyncio.gather(leader.compact(), leader.absorb([late]), leader.compact())
    again = theirs.replica()
    assert again.state.label == "kept?"
    assert again.ledger.head() == leader.ledger.head()


async def test_a_snapshot_that_is_adopted_again_and_again_is_kept_once(
    ours: Disk, theirs: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupiterd.daemon.ledger.replica.MAX_ENTRIES", 1)
    leader = await founded(theirs, ours)
    follower = ours.replica()
    await follower.move_to(whole_ledger(leader))
    await grown(leader, 5)
    await leader.compact()
    raw = await leader.snapshot()
    for _ in range(3):
        await follower.adopt(raw, theirs.identity.node_id)
    own = await follower.snapshot()
    assert parse_snapshot(own).author == ours.identity.node_id
    assert ours.replica().state == leader.state


async def test_a_snapshot_on_disk_that_cannot_be_read_is_told_and_not_passed_over(
    ours: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupiterd.daemon.ledger.replica.MAX_ENTRIES", 1)
    replica = await founded(ours)
    await grown(replica, 5)
    await replica.compact()
    raw = await replica.snapshot()
    ours.file().compact(raw[:-1] + bytes([raw[-1] ^ 1]), [], [])
    with pytest.raises(CorruptLedgerError, match="the ledger on disk can't be read"):
        ours.replica()


async def test_what_was_meant_for_one_cluster_is_not_written_into_another(
    ours: Disk, theirs: Disk
) -> None:
    replica, other = await founded(ours), await founded(theirs, ours)
    moving = asyncio.ensure_future(replica.move_to(whole_ledger(other)))
    await asyncio.sleep(0)
    late = asyncio.ensure_future(replica.append(1, [PairingWindowSet(is_open=True, edit=9)]))
    await moving
    with pytest.raises(NoLeaderError, match="moved to another cluster"):
        await late
    assert replica.ledger.tips() == other.ledger.tips()


async def test_an_entry_in_our_name_that_we_have_not_written_tells_of_a_clone(ours: Disk) -> None:
    replica, met = await founded(ours), list[str]()
    replica.on_clone = lambda: met.append(replica.clones.seen_at)
    index, previous = replica.ledger.chain_end(replica._writer)
    facts = (PairingWindowSet(is_open=True, edit=9),)
    body = compose(replica.cluster, 9, replica._writer, index, previous, facts)
    assert await replica.absorb([seal(body, b"nobody's signature" * 4)]) == 0
    assert await replica.absorb(raws(replica)) == 0
    assert not met
    assert await replica.absorb([seal(body, ours.identity.sign(body))]) == 0
    assert met == [f"entry {index} of the ledger"]
