"""Artifacts between two real servers over mutual TLS on loopback."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import pytest

from jupiterd.cluster.values.bounds import MAX_NUMBER
from jupiterd.daemon.artifacts import artifact_service
from jupiterd.daemon.artifacts.artifact_service import ArtifactService
from jupiterd.errors import (
    CorruptArtifactError,
    MalformedError,
    NotFoundError,
    PeerUnreachableError,
    RefusedError,
    UsageError,
)
from jupiterd.ids import ArtifactId, NodeId
from jupiterd.net.artifact_source import PeerArtifactSource
from jupiterd.net.artifact_wire import add_artifacts
from jupiterd.net.channels import PeerChannels
from jupiterd.net.identity import Identity
from jupiterd.net.server import PeerServer
from jupiterd.ports import Address
from jupiterd.rpc import artifact_pb2
from jupiterd.store.artifacts import ArtifactStore
from jupiterd.store.manifest import CHUNK_BYTES
from jupiterd.store.reading import ServedArtifact
from jupiterd.store.transfer import fetch
from tests.unit.net.conftest import named_identity, open_border

pytestmark = pytest.mark.net


class Machine:
    """A node with a store, a server and connections to others."""

    def __init__(self, folder: Path, name: str) -> None:
        self.identity: Identity = named_identity(folder, name)
        self.store = ArtifactStore(folder / name / "store")
        self.members: set[NodeId] = set()
        self.damaged: list[ArtifactId] = []
        self.wishes: list[tuple[ArtifactId, NodeId]] = []
        self.given_way: list[int] = []
        self.most_bytes = 1 << 30
        self.service = ArtifactService(self, self.members.__contains__)
        self.server = self.new_server()
        self.port = 0
        self.channels: list[PeerChannels] = []

    def new_server(self) -> PeerServer:
        server = PeerServer(self.identity, "127.0.0.1", 0, open_border())
        server.add(partial(add_artifacts, self.service))
        return server

    def note_damage(self, artifact: ArtifactId) -> None:
        self.damaged.append(artifact)

    def part_bytes(self, most_bytes: int) -> int:
        return min(most_bytes, self.most_bytes)

    async def throttle(self, size_bytes: int, took_s: float) -> None:
        self.given_way.append(size_bytes)

    async def replicate(self, artifact: ArtifactId, peer: NodeId) -> None:
        self.wishes.append((artifact, peer))
        raise PeerUnreachableError("the way back is cut")

    def to(self, peer: "Machine") -> PeerChannels:
        address = Address("127.0.0.1", peer.port)
        self.channels.append(PeerChannels(self.identity, address, peer.identity.certificate_pem))
        return self.channels[-1]

    def source(self, peer: "Machine", name: str) -> PeerArtifactSource:
        return PeerArtifactSource(name, self.to(peer).bulk)

    async def stop(self) -> None:
        for channels in self.channels:
            await channels.close()
        await self.server.stop(0)


@pytest.fixture
async def three(tmp_path: Path) -> AsyncIterator[tuple[Machine, Machine, Machine]]:
    machines = [Machine(tmp_path, name) for name in ("one", "two", "three")]
    for machine in machines:
        machine.members |= {other.identity.node_id for other in machines}
        machine.port = await machine.server.start()
    yield machines[0], machines[1], machines[2]
    for machine in machines:
        await machine.stop()


def fill(machine: Machine, folder: Path, seed: bytes = b"jupiter") -> ArtifactId:
    source = folder / f"source of {machine.identity.node_id}"
    (source / "shards").mkdir(parents=True)
    for number in range(5):
        (source / "shards" / f"{number}.bin").write_bytes((seed + bytes([number])) * 131_072)
    (source / "config.json").write_bytes(b"{}")
    return machine.store.ingest(source)


def fill_large(machine: Machine, folder: Path) -> ArtifactId:
    source = folder / "large"
    source.write_bytes(os.urandom(48 * CHUNK_BYTES))
    return machine.store.ingest(source)


def damage(machine: Machine, artifact: ArtifactId, name: str) -> None:
    path = machine.store.path(artifact) / name
    path.chmod(0o644)
    with path.open("r+b") as file:
        file.seek(17)
        file.write(os.urandom(8))


def whole(machine: Machine, artifact: ArtifactId) -> bytes:
    return machine.store.read(artifact, 0, machine.store.manifest(artifact).size_bytes)


async def test_a_folder_of_five_megabytes_travels_between_two_nodes(
    three: tuple[Machine, Machine, Machine], tmp_path: Path
) -> None:
    one, two, _ = three
    artifact = fill(one, tmp_path)
    await fetch(two.store, artifact, [two.source(one, "one")])
    assert len(whole(two, artifact)) > 5_000_000
    assert whole(two, artifact) == whole(one, artifact)


async def test_two_who_fetch_at_once_give_each_other_what_they_have(
    three: tuple[Machine, Machine, Machine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, third = three
    artifact, sent_bytes = fill_large(one, tmp_path), 0
    read = ServedArtifact.read

    def counting_read(reading: ServedArtifact, offset: int, length: int) -> bytes:
        nonlocal sent_bytes
        sent_bytes += length * (reading._store is one.store)
        return read(reading, offset, length)

    monkeypatch.setattr(ServedArtifact, "read", counting_read)

    def meet(me: Machine, other: Machine) -> Callable[[NodeId], PeerArtifactSource | None]:
        known = {other.identity.node_id: me.source(other, "the other")}
        return lambda node: known.pop(node, None)

    await asyncio.gather(
        fetch(two.store, artifact, [two.source(one, "one")], meet=meet(two, third)),
        fetch(third.store, artifact, [third.source(one, "one")], meet=meet(third, two)),
    )
    expected = whole(one, artifact)
    assert whole(two, artifact) == whole(third, artifact) == expected
    assert sent_bytes < 1.7 * len(expected)  # without each other's help it would be twice as much


async def test_who_has_nothing_but_what_it_gets_itself_is_a_source_too(
    three: tuple[Machine, Machine, Machine], tmp_path: Path
) -> None:
    one, two, third = three
    artifact = fill_large(one, tmp_path)
    first = asyncio.ensure_future(fetch(two.store, artifact, [two.source(one, "one")]))
    while not two.store.growing(artifact) and not first.done():  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    request = artifact_pb2.HaveRequest(ids=[artifact])
    reply = await third.to(two).bulk.Have(request, timeout=5)
    assert artifact in (*reply.growing, *reply.ids)
    await fetch(third.store, artifact, [third.source(two, "two")])
    await first
    assert whole(third, artifact) == whole(one, artifact)


async def test_hostile_wishes_are_refused(
    three: tuple[Machine, Machine, Machine], tmp_path: Path
) -> None:
    one, two, _ = three
    source, artifact = two.source(one, "one"), fill(one, tmp_path)
    for wanted in (b"\xff" * 100_000, b"\0" * 100_000, b"\xff\xff"):
        with pytest.raises(CorruptArtifactError, match="beyond the end"):
            await source.draw(artifact, wanted, 1 << 20, 0.0)
    with pytest.raises(NotFoundError):
        await source.draw(ArtifactId("../../etc/passwd"), b"", 1 << 20, 0.0)
    assert await source.draw(artifact, b"", MAX_NUMBER, 60.0) == ([], [])
    with pytest.raises(MalformedError, match="max_bytes"):
        await source.draw(artifact, b"", 1 << 63, 60.0)
    one.members.clear()
    with pytest.raises(RefusedError):
        await source.draw(artifact, b"\x01", 1, 0.0)


async def test_a_transfer_that_broke_off_goes_on_from_where_it_was(
    three: tuple[Machine, Machine, Machine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, _ = three
    artifact = fill(one, tmp_path)
    served: list[int] = []
    read = ServedArtifact.read

    def dying_read(reading: ServedArtifact, offset: int, length: int) -> bytes:
        if offset > 3 * CHUNK_BYTES:
            raise PeerUnreachableError("the cable was pulled")
        return read(reading, offset, length)

    def counting_read(reading: ServedArtifact, offset: int, length: int) -> bytes:
        served.append(length)
        return read(reading, offset, length)

    monkeypatch.setattr(ServedArtifact, "read", dying_read)
    with pytest.raises(PeerUnreachableError, match="the cable was pulled"):
        await fetch(two.store, artifact, [two.source(one, "one")])
    monkeypatch.setattr(ServedArtifact, "read", counting_read)
    await fetch(two.store, artifact, [two.source(one, "one")])
    assert max(served) <= CHUNK_BYTES
    assert 0 < sum(served) < 4 * CHUNK_BYTES
    assert whole(two, artifact) == whole(one, artifact)


async def test_a_corrupt_source_and_a_dead_one_fall_through_to_the_next(
    three: tuple[Machine, Machine, Machine], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one, two, third = three
    artifact = fill(one, tmp_path)
    assert fill(two, tmp_path) == artifact
    for number in range(5):  # whatever it is asked for first
        damage(two, artifact, f"shards/{number}.bin")
    gone = third.source(one, "gone")
    await one.server.stop(0)
    one.server = one.new_server()
    one.port = await one.server.start()
    sources = [gone, third.source(two, "damaged"), third.source(one, "one")]
    await fetch(third.store, artifact, sources)
    assert set(two.damaged) == {artifact}
    assert one.damaged == []
    assert whole(third, artifact) == whole(one, artifact)
    assert [record.message.split()[3] for record in caplog.records] == [
        "source=gone",
        "source=damaged",
    ]


async def test_somebody_who_is_no_member_gets_nothing(
    three: tuple[Machine, Machine, Machine], tmp_path: Path
) -> None:
    one, two, _ = three
    artifact = fill(one, tmp_path)
    one.members.clear()
    stranger = two.source(one, "one")
    with pytest.raises(RefusedError, match=f"node {two.identity.node_id[:8]} is no member"):
        await stranger.manifest(artifact)
    with pytest.raises(RefusedError):
        await anext(stranger.fetch(artifact, [(0, 1)]))
    with pytest.raises(RefusedError):
        await fetch(two.store, artifact, [stranger])


async def test_members_learn_what_is_here(
    three: tuple[Machine, Machine, Machine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, _ = three
    artifact = fill(one, tmp_path)
    request = artifact_pb2.HaveRequest(ids=["0" * 64, artifact, "../../etc"])
    looking: set[threading.Thread] = set()
    holds = one.store.holds

    def noting(asked: ArtifactId) -> bool:
        looking.add(threading.current_thread())
        return holds(asked)

    monkeypatch.setattr(one.store, "holds", noting)
    assert list((await two.to(one).bulk.Have(request, timeout=5)).ids) == [artifact]
    assert threading.main_thread() not in looking  # thousands of files are looked up beside it
    assert await two.source(one, "one").manifest(ArtifactId("../../etc/passwd")) is None


async def test_hostile_ranges_are_refused(
    three: tuple[Machine, Machine, Machine], tmp_path: Path
) -> None:
    one, two, _ = three
    source, artifact = two.source(one, "one"), fill(one, tmp_path)
    with pytest.raises(UsageError, match="more than 4096 ranges"):
        await anext(source.fetch(artifact, [(0, 1)] * 4097))
    with pytest.raises(Exception, match="beyond the end"):
        await anext(source.fetch(artifact, [(MAX_NUMBER, 1)]))
    with pytest.raises(MalformedError, match=r"ByteRange\.offset"):
        await anext(source.fetch(artifact, [((1 << 64) - 2, 1)]))


async def test_a_wish_for_a_second_copy_reaches_the_daemon_with_the_asker(
    three: tuple[Machine, Machine, Machine], tmp_path: Path
) -> None:
    one, two, _ = three
    artifact = fill(one, tmp_path)
    reply = await one.to(two).bulk.Replicate(artifact_pb2.ReplicateRequest(id=artifact), timeout=5)
    assert (reply.held, reply.reason) == (False, "the way back is cut")
    assert two.wishes == [(artifact, one.identity.node_id)]


async def test_a_fifth_transfer_of_one_peer_waits_for_its_turn(
    three: tuple[Machine, Machine, Machine], tmp_path: Path
) -> None:
    one, two, _ = three
    artifact = fill(one, tmp_path)
    bulk = two.to(one).bulk
    everything = artifact_pb2.ByteRange(offset=0, length=len(whole(one, artifact)))
    request = artifact_pb2.FetchRequest(id=artifact, ranges=[everything] * 100)
    # Nobody reads on, so the first four stay in flight: 500 MB don't fit into their windows.
    calls = [bulk.Fetch(request) for _ in range(4)]
    for call in calls:
        await anext(aiter(call))
    fifth = bulk.Fetch(request, timeout=0.3)
    with pytest.raises(Exception, match="Deadline"):
        await anext(aiter(fifth))
    calls[0].cancel()
    assert (await anext(aiter(bulk.Fetch(request, timeout=10)))).offset == 0
    for call in calls:
        call.cancel()


async def test_who_waits_for_its_turn_does_not_give_its_source_up(
    three: tuple[Machine, Machine, Machine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifact_service, "TURN_REPORT_S", 0.05)
    one, two, _ = three
    artifact, large = fill(one, tmp_path), fill_large(one, tmp_path)
    bulk, (everything,) = two.to(one).bulk, [artifact_pb2.ByteRange(length=48 * CHUNK_BYTES)]
    request = artifact_pb2.FetchRequest(id=large, ranges=[everything] * 10)
    calls = [bulk.Fetch(request) for _ in range(4)]
    for call in calls:
        await anext(aiter(call))
    fetching = asyncio.ensure_future(
        fetch(two.store, artifact, [two.source(one, "one")], stall_s=0.5)
    )
    await asyncio.wait([fetching], timeout=1.5)
    assert not fetching.done()
    for call in calls:
        call.cancel()
    await fetching
    assert whole(two, artifact) == whole(one, artifact)


async def test_way_is_given_after_each_part_of_the_size_that_the_rate_allows(
    three: tuple[Machine, Machine, Machine], tmp_path: Path
) -> None:
    one, two, _ = three
    one.most_bytes = 64 << 10
    artifact = fill(one, tmp_path)
    await fetch(two.store, artifact, [two.source(one, "one")])
    assert max(one.given_way) <= one.most_bytes
    assert sum(one.given_way) == len(whole(one, artifact))
