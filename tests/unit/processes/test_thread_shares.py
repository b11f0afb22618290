"""Workers of one machine share its cores: never has each of two all of them."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from jupiterd.processes.environment import worker_environment
from jupiterd.processes.process import start_worker
from jupiterd.processes.thread_shares import Seat, ThreadShares, share_of_each
from jupiterd.protocol.frames import Frame, Progressed, RunTask
from tests.unit.processes.conftest import ROOT


@pytest.mark.parametrize(
    ("cores", "workers", "each"),
    [(16, 1, 16), (16, 2, 8), (16, 3, 5), (2, 2, 1), (2, 5, 1), (1, 1, 1), (8, 0, 8)],
)
def test_each_worker_has_an_equal_part_and_at_least_one(
    cores: int, workers: int, each: int
) -> None:
    assert share_of_each(cores, workers) == each


def test_shares_are_made_anew_whenever_a_worker_begins_or_ends() -> None:
    shares, told = ThreadShares(lambda: 16), list[tuple[str, int]]()
    with shares.seat() as first:
        assert first.threads == 16
        first.hears_by(lambda threads: told.append(("first", threads)))
        with shares.seat() as second, shares.seat() as third:
            assert (second.threads, third.threads) == (8, 5)
            second.hears_by(lambda threads: told.append(("second", threads)))
            assert second.threads == 5, "it began while the third one did"
    assert told == [
        ("first", 8), ("first", 5), ("second", 5),
        ("first", 8), ("second", 8), ("first", 16),
    ]  # fmt: skip


def test_a_rank_keeps_what_its_gang_gave_it_and_takes_it_from_the_others() -> None:
    shares, told = ThreadShares(lambda: 8), list[int]()
    with shares.seat(can_change=False) as rank:
        assert rank.threads == 0, "its environment says how many"
        rank.hears_by(told.append)
        with shares.seat() as scoring:
            assert scoring.threads == 4
    assert not told


def test_a_quota_that_changes_counts_from_the_next_worker_on() -> None:
    cores = [16]
    shares = ThreadShares(lambda: cores[0])
    with shares.seat():
        cores[0] = 4
        with shares.seat() as second:
            assert second.threads == 2


def test_a_worker_that_failed_leaves_its_share() -> None:
    shares = ThreadShares(lambda: 4)
    with pytest.raises(RuntimeError), shares.seat():
        raise RuntimeError
    with shares.seat() as seat:
        assert seat.threads == 4


@asynccontextmanager
async def computing(folder: Path, name: str, seat: Seat) -> AsyncGenerator[AsyncIterator[Frame]]:
    order = RunTask("count", {}, {}, str(folder), threads=seat.threads)
    environment = worker_environment("evaluate", {"threads": 6}) | {"PYTHONPATH": str(ROOT)}
    module = "tests.support.processes.counting_worker"
    async with start_worker(order, environment, folder / f"{name}.log", module=module) as worker:
        seat.hears_by(worker.share_threads)
        yield worker.frames()


async def threads_of(frames: AsyncIterator[Frame]) -> int:
    frame = await anext(frames)
    assert isinstance(frame, Progressed)
    return frame.done


async def test_two_real_workers_at_once_have_half_of_the_threads_each(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    shares = ThreadShares(lambda: 6)
    with shares.seat() as seat:
        async with computing(tmp_path, "first", seat) as first:
            assert await threads_of(first) == 6
            with shares.seat() as other_seat:
                async with computing(tmp_path, "second", other_seat) as second:
                    assert (await threads_of(first), await threads_of(second)) == (3, 3)
            assert await threads_of(first) == 6, "the second one has ended"
