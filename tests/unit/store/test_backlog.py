"""What a lane brings is written while more comes, together where it can, one lane at a time."""

import asyncio
import contextlib

import pytest

from jupiterd.errors import CorruptArtifactError, PeerUnreachableError
from jupiterd.store.assembly import Whole
from jupiterd.store.backlog import MAX_WAITING_BYTES, Backlog

SIZE_BYTES = MAX_WAITING_BYTES // 4
END = -1


def chunk(index: int) -> list[Whole]:
    return [(index, memoryview(bytes(SIZE_BYTES)))]


class Disk:
    """Notes what is written together; `free` lets it go on."""

    def __init__(self) -> None:
        self.written: list[list[int]] = []
        self.turn = asyncio.Lock()
        self.begun = asyncio.Event()
        self.free = asyncio.Event()
        self.bad = -1

    async def write(self, chunks: list[Whole]) -> None:
        self.begun.set()
        await self.free.wait()
        numbers = [index for index, _ in chunks]
        if self.bad in numbers:
            raise CorruptArtifactError("a bad chunk")
        self.written.append(numbers)


async def test_what_comes_while_some_is_written_is_written_together() -> None:
    disk = Disk()
    async with Backlog(disk.write, disk.turn) as backlog:
        await backlog.add(chunk(0))
        await disk.begun.wait()
        await backlog.add(chunk(1))
        await backlog.add(chunk(2))
        disk.free.set()
    assert disk.written == [[0], [1, 2]]


async def test_who_brings_too_much_waits_until_it_is_written() -> None:
    disk = Disk()
    async with Backlog(disk.write, disk.turn) as backlog:
        await backlog.add(chunk(0))
        await disk.begun.wait()
        for index in (1, 2, 3):
            await backlog.add(chunk(index))
        full = asyncio.ensure_future(backlog.add(chunk(4)))
        await rounds()
        assert not full.done()
        disk.free.set()
        await full
        assert disk.written == [[0], [1, 2, 3, 4]]


async def test_of_two_lanes_one_writes_at_a_time() -> None:
    disk = Disk()
    async with Backlog(disk.write, disk.turn) as one, Backlog(disk.write, disk.turn) as other:
        await one.add(chunk(0))
        await disk.begun.wait()
        disk.begun.clear()
        await other.add(chunk(1))
        await asyncio.sleep(0)
        assert not disk.begun.is_set()
        disk.free.set()
    assert disk.written == [[0], [1]]


async def lane(disk: Disk, *indices: int, broken: bool = False) -> list[int]:
    """Bring chunks, one each time the loop has gone round a few times; return those taken."""
    taken: list[int] = []
    with contextlib.suppress(CorruptArtifactError, PeerUnreachableError):
        async with Backlog(disk.write, disk.turn) as backlog:
            for index in indices:
                await backlog.add(chunk(index))
                taken.append(index)
                await rounds()
            if broken:
                raise PeerUnreachableError("the source is gone")
        taken.append(END)
    return taken


async def rounds() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_chunk_that_is_refused_ends_the_lane() -> None:
    disk = Disk()
    disk.bad = 1
    disk.free.set()
    assert await lane(disk, 0, 1) == [0, 1], "told when it would end"
    assert await lane(disk, 1, 2, 3) == [1], "told when it brings more"
    assert await lane(disk, 2, 3) == [2, 3, END]
    assert disk.written == [[0], [2], [3]]


async def test_what_came_before_a_break_is_written() -> None:
    disk = Disk()
    bringing = asyncio.ensure_future(lane(disk, 0, 1, broken=True))
    await disk.begun.wait()
    await rounds()
    disk.free.set()
    assert await bringing == [0, 1]
    assert disk.written == [[0], [1]]


async def test_a_lane_that_is_cancelled_writes_no_more() -> None:
    disk = Disk()

    async def wait_for_more() -> None:
        async with Backlog(disk.write, disk.turn) as backlog:
            await backlog.add(chunk(0))
            await asyncio.Event().wait()

    task = asyncio.ensure_future(wait_for_more())
    await disk.begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    disk.free.set()
    await asyncio.sleep(0)
    assert not disk.written
    assert not disk.turn.locked()
