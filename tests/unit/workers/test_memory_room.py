"""Doing less at a time where memory runs out."""

import subprocess
import sys
from collections.abc import Iterator, Sequence

import pytest

from jupiterd.errors import ModelTooLargeError
from jupiterd.workers.memory_room import with_room_for_all


class Device:
    """Has room for so many things at a time, and may run out of memory in their midst."""

    def __init__(self, room: int, fails_behind: int | None = None) -> None:
        self.room, self.fails_behind = room, fails_behind
        self.attempts: list[list[int]] = []
        self.fewer: list[int] = []

    def attempt(self, numbers: Sequence[int]) -> Iterator[tuple[int, str]]:
        self.attempts.append(list(numbers))
        for place, number in enumerate(numbers):
            if len(numbers) > self.room and place == (self.fails_behind or 0):
                raise MemoryError
            yield number, f"done {number}"

    def run(self, count: int, at_a_time: int) -> dict[int, str]:
        found = with_room_for_all(count, at_a_time, self.attempt, self.fewer.append, "prompt")
        return dict(found)


def test_all_is_done_in_the_end_half_as_much_at_a_time():
    device = Device(room=2)
    assert device.run(7, 8) == {number: f"done {number}" for number in range(7)}
    assert [len(each) for each in device.attempts] == [7, 3, 1, 1, 1, 1, 1, 1, 1]
    assert device.fewer == [3, 1]


def test_what_was_done_before_memory_ran_out_is_not_done_again():
    device = Device(room=2, fails_behind=2)
    assert len(device.run(4, 4)) == 4
    assert device.attempts == [[0, 1, 2, 3], [2], [3]]


def test_where_not_even_one_fits_it_is_told():
    with pytest.raises(ModelTooLargeError, match="with a single prompt at a time"):
        Device(room=0).run(2, 4)


def test_another_failure_is_none_of_memory():
    def broken(_: Sequence[int]) -> Iterator[tuple[int, str]]:
        raise ValueError("odd")
        yield 0, ""

    with pytest.raises(ValueError, match="odd"):
        dict(with_room_for_all(1, 1, broken, lambda _: None, "prompt"))


HOLES = """
import ctypes, psutil
from jupiterd.workers.memory_room import hand_back_large_blocks
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
{first}
def made(size):
    place = libc.malloc(size)
    ctypes.memset(place, 1, size)
    return place
libc.free(made(30 << 20))  # from here on glibc keeps blocks that are smaller
before = psutil.Process().memory_info().rss
large, small = [], []
for _ in range(40):
    large.append(made(4 << 20))
    small.append(made(100_000))
for place in large:
    libc.free(place)
print((psutil.Process().memory_info().rss - before) >> 20)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc alone")
def test_large_blocks_are_handed_back_although_small_ones_lie_between_them():
    def left_mib(first: str) -> int:
        program = (sys.executable, "-c", HOLES.format(first=first))
        told = subprocess.run(program, capture_output=True, text=True, check=True)
        return int(told.stdout)

    assert left_mib("") > 100
    assert left_mib("hand_back_large_blocks()") < 40
