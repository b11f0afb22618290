import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest

from jupiterd.errors import (
    CorruptArtifactError,
    DiskFullError,
    NotFoundError,
    PeerUnreachableError,
)
from jupiterd.ids import ArtifactId, NodeId
from jupiterd.store import seeding_order
from jupiterd.store.artifacts import ArtifactStore
from jupiterd.store.bitmap import each
from jupiterd.store.chunk_requests import ChunkRequests
from jupiterd.store.manifest import CHUNK_BYTES
from jupiterd.store.partial import PartialArtifact
from jupiterd.store.transfer import fetch

PIECE_BYTES = 256 << 10
Piece = tuple[int, bytes]


class StoreSource:
    """Another store in this process; `spoil` may change each piece, drop it (None) or raise."""

    def __init__(
        self, name: str, store: ArtifactStore, spoil: Callable[[Piece], Piece | None] | None = None
    ) -> None:
        self.name = name
        self.store = store
        self.spoil = spoil or (lambda piece: piece)
        self.drawing = ChunkRequests(store)
        self.asked: list[Sequence[tuple[int, int]]] = []
        self.sent_bytes = 0
        self.is_closed = False

    async def manifest(self, artifact: ArtifactId) -> bytes | None:
        return self.store.manifest_bytes(artifact) if self.store.holds(artifact) else None

    async def draw(
        self, artifact: ArtifactId, wanted: bytes, max_bytes: int, wait_s: float
    ) -> tuple[list[int], list[NodeId]]:
        return await self.drawing.draw(artifact, NodeId("asker"), wanted, max_bytes, wait_s)

    async def fetch(
        self, artifact: ArtifactId, ranges: Sequence[tuple[int, int]]
    ) -> AsyncIterator[Piece]:
        self.asked.append(ranges)
        try:
            for start, length in ranges:
                for offset in range(start, start + length, PIECE_BYTES):
                    data = self.store.read(
                        artifact, offset, min(PIECE_BYTES, start + length - offset)
                    )
                    piece = self.spoil((offset, data))
                    if piece is not None:
                        self.sent_bytes += len(piece[1])
                        yield piece
        finally:
            self.is_closed = True


@pytest.fixture
def holder(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "holder")


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "store")


@pytest.fixture
def artifact(holder: ArtifactStore, tmp_path: Path) -> ArtifactId:
    source = tmp_path / "source"
    source.mkdir()
    (source / "weights").write_bytes(os.urandom(3 * CHUNK_BYTES + 5))
    for number in range(20):
        (source / f"small{number:02}").write_bytes(os.urandom(number))
    return holder.ingest(source)


def break_at(offset: int, error: Exception) -> Callable[[Piece], Piece]:
    def spoil(piece: Piece) -> Piece:
        if piece[0] + len(piece[1]) > offset:
            raise error
        return piece

    return spoil


def flipped(piece: Piece) -> Piece:
    offset, data = piece
    return (offset, bytes([data[0] ^ 1]) + data[1:]) if offset > CHUNK_BYTES else piece


def in_a_row(asked: list[Sequence[tuple[int, int]]]) -> list[tuple[int, int]]:
    """All ranges that a source was asked for, joined where one begins at another's end."""
    joined: list[tuple[int, int]] = []
    for offset, length in sorted(part for ranges in asked for part in ranges):
        if joined and sum(joined[-1]) == offset:
            joined[-1] = (joined[-1][0], joined[-1][1] + length)
        else:
            joined.append((offset, length))
    return joined


async def test_an_artifact_comes_over_whole_and_small_files_share_one_range(
    store: ArtifactStore, holder: ArtifactStore, artifact: ArtifactId
) -> None:
    source = StoreSource("a", holder)
    await fetch(store, artifact, [source])
    assert store.manifest_bytes(artifact) == holder.manifest_bytes(artifact)
    size_bytes = store.manifest(artifact).size_bytes
    assert store.read(artifact, 0, size_bytes) == holder.read(artifact, 0, size_bytes)
    assert in_a_row(source.asked) == [(0, size_bytes)]
    assert len(source.asked) <= 6


async def test_what_is_here_already_is_not_fetched(
    store: ArtifactStore, holder: ArtifactStore, artifact: ArtifactId
) -> None:
    await fetch(store, artifact, [StoreSource("a", holder)])
    again = StoreSource("a", holder)
    await fetch(store, artifact, [again])
    assert again.asked == []


async def test_several_who_want_the_same_at_once_share_one_transfer(
    store: ArtifactStore, holder: ArtifactStore, artifact: ArtifactId
) -> None:
    source = StoreSource("a", holder)
    await asyncio.gather(*(fetch(store, artifact, [source]) for _ in range(5)))
    assert in_a_row(source.asked) == [(0, store.manifest(artifact).size_bytes)]


async def test_when_the_first_is_cancelled_the_next_one_finishes_the_transfer(
    store: ArtifactStore, holder: ArtifactStore, artifact: ArtifactId
) -> None:
    began = asyncio.Event()

    class Stuck(StoreSource):
        async def fetch(
            self, artifact: ArtifactId, ranges: Sequence[tuple[int, int]]
        ) -> AsyncIterator[Piece]:
            began.set()
            await asyncio.Event().wait()
            yield 0, b""

    async with asyncio.TaskGroup() as group:
        first = group.create_task(fetch(store, artifact, [Stuck("stuck", holder)]))
        await began.wait()
        second = group.create_task(fetch(store, artifact, [StoreSource("a", holder)]))
        await asyncio.sleep(0)
        assert not second.done()
        first.cancel()
    assert store.holds(artifact)


async def test_a_break_costs_only_what_had_not_come_yet(
    store: ArtifactStore, holder: ArtifactStore, artifact: ArtifactId
) -> None:
    def break_when_a_third_is_here(piece: Piece) -> Piece:
        growth = store.growing(artifact)
        assert growth is not None
        chunks = growth.manifest.chunks
        if sum(chunks[index].size_bytes for index in each(growth.verified)) >= CHUNK_BYTES:
            raise PeerUnreachableError("gone")
        return piece

    with pytest.raises(PeerUnreachableError, match="gone"):
        await fetch(store, artifact, [StoreSource("a", holder, break_when_a_third_is_here)])
    assert not store.holds(artifact)
    healed = StoreSource("healed", holder)
    await fetch(store, artifact, [healed])
    size_bytes = store.manifest(artifact).size_bytes
    assert healed.sent_bytes <= size_bytes - CHUNK_BYTES
    assert holder.read(artifact, 0, size_bytes) == store.read(artifact, 0, size_bytes)


@pytest.mark.parametrize(
    "spoil",
    [
        flipped,
        lambda piece: (piece[0] + 1, piece[1]),
        lambda piece: (piece[0], piece[1] + b"more"),
        lambda piece: (piece[0], b""),
        lambda piece: None if piece[0] > CHUNK_BYTES else piece,
        break_at(CHUNK_BYTES, PeerUnreachableError("gone")),
        break_at(0, NotFoundError("deleted meanwhile")),
    ],
    ids=["flipped", "shifted", "too much", "nothing", "ends early", "breaks", "lost it"],
)
async def test_a_bad_source_is_given_up_for_the_next(
    store: ArtifactStore,
    holder: ArtifactStore,
    artifact: ArtifactId,
    spoil: Callable[[Piece], Piece | None],
) -> None:
    bad, good = StoreSource("bad", holder, spoil), StoreSource("good", holder)
    await fetch(store, artifact, [bad, good])
    size_bytes = store.manifest(artifact).size_bytes
    assert store.read(artifact, 0, size_bytes) == holder.read(artifact, 0, size_bytes)
    assert good.sent_bytes >= size_bytes - 3 * CHUNK_BYTES


async def test_with_bad_sources_alone_the_last_failure_is_told(
    store: ArtifactStore, holder: ArtifactStore, artifact: ArtifactId
) -> None:
    with pytest.raises(CorruptArtifactError, match="doesn't match its hash"):
        await fetch(store, artifact, [StoreSource("bad", holder, flipped)])
    assert not store.holds(artifact)


async def test_a_silent_source_is_given_up(
    store: ArtifactStore, holder: ArtifactStore, artifact: ArtifactId
) -> None:
    class Silent(StoreSource):
        async def fetch(
            self, artifact: ArtifactId, ranges: Sequence[tuple[int, int]]
        ) -> AsyncIterator[Piece]:
            await asyncio.Event().wait()
            yield 0, b""

    class Mute(StoreSource):
        async def manifest(self, artifact: ArtifactId) -> bytes | None:
            await asyncio.Event().wait()

    sources = [Mute("mute", holder), Silent("silent", holder)]
    with pytest.raises(PeerUnreachableError, match="silent sent nothing"):
        await fetch(store, artifact, sources, stall_s=0.02)
    await fetch(store, artifact, [*sources, StoreSource("good", holder)], stall_s=0.5)
    assert store.holds(artifact)


async def test_a_manifest_of_something_else_is_not_believed(
    store: ArtifactStore, holder: ArtifactStore, artifact: ArtifactId, tmp_path: Path
) -> None:
    (tmp_path / "other").write_bytes(b"something else")
    wrong = holder.ingest(tmp_path / "other")

    class Liar(StoreSource):
        async def manifest(self, artifact: ArtifactId) -> bytes | None:
            return self.store.manifest_bytes(wrong)

    with pytest.raises(CorruptArtifactError, match="something else"):
        await fetch(store, artifact, [Liar("liar", holder)])
    assert store.ids() == []


async def test_an_artifact_that_nobody_has_is_not_found(
    store: ArtifactStore, artifact: ArtifactId, tmp_path: Path
) -> None:
    empty = StoreSource("empty", ArtifactStore(tmp_path / "empty"))
    for sources in ([], [empty]):
        with pytest.raises(NotFoundError, match="on no node"):
            await fetch(store, artifact, sources)


async def test_a_full_disk_ends_the_transfer_without_blaming_the_source(
    store: ArtifactStore,
    holder: ArtifactStore,
    artifact: ArtifactId,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def full(partial: PartialArtifact, index: int, data: bytes) -> None:
        raise DiskFullError("no room left")

    monkeypatch.setattr(PartialArtifact, "write", full)
    with pytest.raises(DiskFullError):
        await fetch(store, artifact, [StoreSource("a", holder), StoreSource("b", holder)])
    assert "source failed" not in caplog.text


async def test_many_gaps_are_asked_for_in_several_calls(
    store: ArtifactStore,
    holder: ArtifactStore,
    artifact: ArtifactId,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(seeding_order, "MAX_CHUNKS", 2)
    partial = store.begin(holder.manifest_bytes(artifact))
    for chunk in partial.manifest.chunks[::2]:
        partial.write(chunk.index, holder.read(artifact, chunk.offset, chunk.size_bytes))
    source = StoreSource("a", holder)
    await fetch(store, artifact, [source])
    assert {len(ranges) for ranges in source.asked} <= {1, 2}
    assert len(source.asked) > 2
    assert source.is_closed
