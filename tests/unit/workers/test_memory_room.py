"""Doing less at a time where memory runs out."""

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
