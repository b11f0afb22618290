"""Rounds in which nothing can be merged: who is sick or away doesn't end a run for the others."""

from pathlib import Path

import pytest

from jupiterd.cycle.islands.outer_orders import QUARANTINED
from jupiterd.daemon.leader.term_services import TermServices
from tests.support.daemon.two_nodes import until
from tests.unit.daemon.islands.test_island_coordinator import (
    ELSEWHERE,
    coordinating,
    failure,
    islands,
    line,
    reach,
    say,
    trains,
)


@pytest.fixture(autouse=True)
def _nobody_is_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LEAST_GRACE_S", "LEAST_FIRST_GRACE_S", "LOST_GRACE_S"):
        monkeypatch.setattr(f"jupiterd.cycle.islands.outer_round.{name}", 0.0)


@pytest.mark.parametrize(("sync", "rounds"), [("blocking", 1), ("overlapped", 2)])
async def test_an_island_with_no_numbers_waits_for_those_that_train(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sync: str, rounds: int
) -> None:
    async with (
        trains(tmp_path, monkeypatch, sync=sync) as (leading, _),
        coordinating(leading) as task,
    ):
        sick, well = sorted(each.cycle for each in islands(leading))
        for _ in range(rounds):
            before = len(line(leading))
            say(leading, sick)
            say(leading, well)
            await until(lambda before=before: len(line(leading)) > before)
        before = len(line(leading))
        say(leading, sick, norm=float("inf"), elapsed_s=0.0)
        seen = looks_at(leading)
        await until(lambda: len(seen) > 3 or task.done())
        assert not task.done()
        assert len(line(leading)) == before, "the other one still trains"
        say(leading, well)
        await until(lambda: len(line(leading)) > before)
        assert line(leading)[-1].islands == (well,)


def looks_at(leading: TermServices) -> list[float]:
    """Return a list that grows each time the round is looked at."""
    seen: list[float] = []
    news = leading.pseudo_gradients.news

    async def counted(_timeout_s: float) -> None:
        seen.append(0.0)
        await news(0.01)

    leading.pseudo_gradients.news = counted  # pyright: ignore[reportAttributeAccessIssue]
    leading.pseudo_gradients._news.set()
    return seen


async def test_where_all_are_lost_another_island_goes_on_with_their_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        trains(tmp_path, monkeypatch, second=ELSEWHERE) as (leading, _),
        coordinating(leading),
    ):
        here, lost = (each.cycle for each in islands(leading))
        say(leading, lost, elapsed_s=0.001)
        await until(lambda: len(line(leading)) > 1)
        first = line(leading)[1]
        assert set(first.batches) == {lost}, "the other one hasn't caught up"
        reach(leading, here, 1)
        await until(lambda: len(line(leading)) > 2)
        step = line(leading)[2]
        assert (step.islands, set(step.batches)) == ((), {here})
        assert step.positions[here].startswith(first.positions[lost].partition("-")[0])
        say(leading, here)
        await until(lambda: len(line(leading)) > 3)
        assert line(leading)[3].islands == (here,)


async def test_where_nobody_has_numbers_the_run_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with trains(tmp_path, monkeypatch) as (leading, _), coordinating(leading) as task:
        for each in islands(leading):
            say(leading, each.cycle, norm=float("nan"))
        assert "no island has weights that are numbers" in (await failure(task)).message


async def test_who_has_no_numbers_ends_no_run_of_others_that_are_only_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with trains(tmp_path, monkeypatch, second=ELSEWHERE) as (leading, _):
        alive = {leading.term.self_id, ELSEWHERE}
        leading.machines.alive = lambda: frozenset(alive)
        async with coordinating(leading) as task:
            sick, _ = (each.cycle for each in islands(leading))
            alive.discard(ELSEWHERE)
            say(leading, sick, norm=float("nan"))
            await until(lambda: len(line(leading)) > 1 or task.done())
            assert not task.done()
            step = line(leading)[1]
            assert (step.islands, step.left_out[sick]) == ((), QUARANTINED)
            assert set(step.batches) == {sick}, "it gets the weights of all, and goes on"
