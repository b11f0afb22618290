"""How many steps islands train between two exchanges, by what these have cost them."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from jupiterd.cluster.facts import OuterStepTaken
from jupiterd.cluster.outer_pace import MOST_WAITED, paced_steps
from jupiterd.ids import ArtifactId, CycleId
from tests.unit.cluster.building import outer_step

ONE, OTHER = CycleId("1" * 16), CycleId("2" * 16)
WAYS = (ArtifactId("5" * 64), ArtifactId("6" * 64))
PLANNED = 15

Line = dict[str, OuterStepTaken]
Elapsed = Callable[[float], float]
"""How long a round takes, of the time that its steps take."""


def begun(lag: int = 1) -> Line:
    """A line that has begun: nothing is merged, and as many rounds are open as may be."""
    nothing = replace(outer_step(0, steps=PLANNED), islands=(), ways=(), tokens=(), left_out={})
    parents = ["", *map(str, range(lag - 1))]
    return {
        str(number): replace(nothing, number=number, parent=parent, lag=lag)
        for number, parent in enumerate(parents)
    }


def gone_on(line: Line, steps: int, elapsed_s: float, trained_s: float, lag: int = 1) -> Line:
    """The line with a step that ends its last round, and orders one of so many steps."""
    number = len(line)
    step = replace(
        outer_step(number, str(number - 1), steps=steps),
        islands=(ONE, OTHER), ways=WAYS, tokens=(3_000, 1_000), left_out={},
        elapsed_s=elapsed_s, trained_s={ONE: trained_s, OTHER: 0.9 * trained_s}, lag=lag,
    )  # fmt: skip
    return {**line, str(number): step}


def after(rounds: int, step_s: float, elapsed: Elapsed, lag: int = 1) -> Line:
    """A line of so many rounds that were paced, the first of which took far longer."""
    line = begun(lag)
    for _ in range(rounds):
        trained_s = [*line.values()][-lag].steps * step_s
        took_s = elapsed(trained_s) + (30.0 if len(line) == lag else 0.0)
        line = gone_on(line, paced_steps(line, PLANNED), took_s, trained_s, lag)
    return line


def rounds_lengths(line: Line) -> list[int]:
    return [step.steps for step in line.values()]


def test_where_nothing_was_measured_the_planner_is_believed() -> None:
    assert paced_steps({}, PLANNED) == PLANNED
    assert paced_steps(begun(), PLANNED) == PLANNED
    assert paced_steps(after(1, 0.01, lambda trained_s: trained_s + 9.0), PLANNED) == PLANNED


def test_exchanges_that_cost_little_change_nothing() -> None:
    line = after(9, 1.0, lambda trained_s: trained_s + 0.5)
    assert rounds_lengths(line) == [PLANNED] * 10


@pytest.mark.parametrize("exchange_s", [0.1, 0.2])
def test_rounds_grow_until_waiting_islands_wait_for_a_twentieth_of_the_time(
    exchange_s: float,
) -> None:
    line = after(20, 0.01, lambda trained_s: trained_s + exchange_s)
    for step in [*line.values()][-8:]:
        waited_s = step.elapsed_s - max(step.trained_s.values())
        assert waited_s <= MOST_WAITED * step.elapsed_s
    assert max(rounds_lengths(line)) <= 2 * 19 * exchange_s / 0.01


def test_rounds_of_islands_that_train_on_grow_until_an_exchange_fits_into_one() -> None:
    line = after(40, 0.01, lambda trained_s: max(trained_s, 0.4), lag=2)
    assert 36 <= min(rounds_lengths(line)[-8:]) <= max(rounds_lengths(line)[-8:]) <= 45


def test_a_single_delay_doubles_a_round_and_is_forgotten_soon() -> None:
    line = after(5, 1.0, lambda trained_s: trained_s)
    delayed = gone_on(line, PLANNED, 3_600.0, 15.0)
    lengths: list[int] = []
    for _ in range(10):
        steps = paced_steps(delayed, PLANNED)
        lengths.append(steps)
        trained_s = float([*delayed.values()][-1].steps)
        delayed = gone_on(delayed, steps, trained_s, trained_s)
    assert lengths[0] == 2 * PLANNED
    assert lengths[-1] == PLANNED


def test_waiting_for_an_island_that_did_not_come_tells_nothing_of_exchanges() -> None:
    line = after(3, 1.0, lambda trained_s: trained_s)
    last = gone_on(line, PLANNED, 90.0, 15.0)
    missed = {**last, "4": replace(last["4"], left_out={OTHER: "missing"})}
    unknown = {**last, "4": replace(last["4"], trained_s={ONE: 15.0})}
    assert paced_steps(last, PLANNED) == 2 * PLANNED
    assert paced_steps(missed, PLANNED) == paced_steps(unknown, PLANNED) == PLANNED


def test_no_round_is_longer_than_500_steps() -> None:
    line = after(30, 0.001, lambda trained_s: trained_s + 5.0)
    assert max(rounds_lengths(line)) == 500
