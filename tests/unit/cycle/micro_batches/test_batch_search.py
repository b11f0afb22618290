"""The search for a micro batch, against curves of speed with noise."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.micro_batches.batch_search import LIMIT_S, BatchSearch
from jupiterd.cycle.micro_batches.even_sizes import doubling_sizes, largest_size

NOISE = 0.02


@dataclass
class Device:
    """Computes sequences at a speed that grows with their number, and falls beyond a point."""

    sequence_s: float
    """Of one among very many."""
    half_at: float = 0.0
    """Of so many at a time it makes half of what it can."""
    falls_beyond: float = float("inf")
    holds: int = 1 << 30
    noise: float = NOISE
    draws: random.Random = field(default_factory=lambda: random.Random(1))
    asked: list[int] = field(default_factory=list[int])

    def rate(self, size: int) -> float:
        fed = size / (size + self.half_at)
        return fed / self.sequence_s / max(1.0, (size / self.falls_beyond) ** 0.5)

    def pass_s(self, size: int) -> float:
        first = 1.4 if size not in self.asked else 1.0
        self.asked.append(size)
        return size / self.rate(size) * first * self.draws.lognormvariate(0.0, self.noise)

    def best(self, sequences: int, begin: int) -> float:
        sizes = [n for n in {begin, *doubling_sizes(sequences)} if n <= self.holds]
        return max(map(self.rate, sizes), default=0.0)


def searched(
    device: Device,
    sequences: int,
    begin: int,
    fits: Callable[[int], bool] = lambda _: True,
    limit_s: float = LIMIT_S,
) -> tuple[BatchSearch, float]:
    search, elapsed_s = BatchSearch(sequences, begin, fits, device.sequence_s, limit_s), 0.0
    for _ in range(1000):
        if (size := search.next(elapsed_s)) is None:
            return search, elapsed_s
        assert fits(size) or size == begin
        if size > device.holds:
            device.asked.append(size)
            search.ran_out(size)
            elapsed_s += 0.1
        else:
            took_s = device.pass_s(size)
            search.took(size, took_s)
            elapsed_s += took_s
    raise AssertionError("it never ends")


devices = st.builds(
    Device,
    sequence_s=st.floats(1e-5, 0.3),
    half_at=st.floats(0.0, 64.0),
    falls_beyond=st.sampled_from([4.0, 20.0, 100.0, float("inf")]),
    holds=st.integers(1, 2000),
    draws=st.integers(0, 1 << 30).map(random.Random),
)
batches = st.integers(1, 1024).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n)))


@given(devices, batches)
def test_it_ends_in_time_with_a_size_that_fits(device: Device, batch: tuple[int, int]):
    search, elapsed_s = searched(device, *batch)
    measured = {size for size in device.asked if size <= device.holds}
    if len(measured) > 1:  # of the first alone nobody can know how long it takes
        assert elapsed_s <= LIMIT_S
    if any(size <= device.holds for size in device.asked):
        assert 1 <= search.best <= device.holds
    assert 1 <= search.best <= batch[0]


@given(devices, batches)
def test_with_time_enough_it_finds_nearly_the_best_size(device: Device, batch: tuple[int, int]):
    sequences, begin = batch
    search, _ = searched(device, sequences, begin, limit_s=1e9)
    assert device.rate(search.best) >= 0.85 * device.best(sequences, begin)


@given(devices, batches)
def test_it_is_never_much_slower_than_without_a_search(device: Device, batch: tuple[int, int]):
    search, _ = searched(device, *batch)
    if batch[1] <= device.holds:
        assert device.rate(search.best) >= 0.9 * device.rate(batch[1])


def test_a_small_default_grows_until_the_device_is_filled():
    search, elapsed_s = searched(Device(1e-4, half_at=11.0), 64, 8)
    assert search.best == 64
    assert elapsed_s < 5


def test_a_size_that_isnt_faster_leaves_the_default():
    search, _ = searched(Device(0.01, noise=0.01), 64, 8)
    assert search.best == 8


def test_memory_that_runs_out_is_an_answer_and_the_room_below_it_is_used():
    device = Device(1e-4, half_at=200.0, holds=180)
    search, _ = searched(device, 512, 32)
    assert 256 in device.asked
    assert search.best == 171, "the largest third"


def test_a_default_that_runs_out_is_halved():
    search, _ = searched(Device(1e-3, holds=5), 64, 32)
    assert search.best == 4


def test_what_doesnt_fit_is_never_tried():
    device = Device(1e-4, half_at=100.0)
    search, _ = searched(device, 64, 8, fits=lambda size: size <= 20)
    assert max(device.asked) <= 20
    assert search.best == 16


def test_a_pass_that_would_take_too_long_isnt_begun():
    device = Device(3.0)
    search, elapsed_s = searched(device, 64, 8)
    assert (search.best, elapsed_s, device.asked) == (8, 0.0, [])


def test_a_size_that_hangs_ends_the_search_with_what_is_known():
    search, elapsed_s, asked = BatchSearch(64, 8, lambda _: True, 0.01), 0.0, list[int]()
    while (size := search.next(elapsed_s)) is not None:
        took_s = 19.0 if size == 16 else size / 80
        search.took(size, took_s)
        elapsed_s += took_s
        asked.append(size)
    assert asked.count(16) == 1
    assert 32 not in asked
    assert (search.best, elapsed_s <= LIMIT_S) == (8, True)


def test_a_size_whose_passes_hold_the_device_for_too_long_isnt_taken():
    search = BatchSearch(64, 8, lambda _: True, 0.01, most_pass_s=2.0)
    device, elapsed_s = Device(0.05, half_at=100.0), 0.0
    while (size := search.next(elapsed_s)) is not None:
        search.took(size, took_s := device.pass_s(size))
        elapsed_s += took_s
    assert search.best * device.sequence_s * (1 + 100 / search.best) <= 2.0 * 3
    assert device.pass_s(8) > 2.0, "not even the default's"
    assert search.best < 8


@pytest.mark.parametrize("sequences", [1, 2, 3, 48, 64, 100])
def test_the_largest_size_that_fits_is_found(sequences: int):
    for most in range(1, sequences + 1):
        found = largest_size(sequences, lambda size, most=most: size <= most)
        better = [-(-sequences // parts) for parts in range(1, sequences + 1)]
        assert found == max(size for size in better if size <= most)
