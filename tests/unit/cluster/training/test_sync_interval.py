"""How many steps islands train between two exchanges, by what these have cost them."""

from collections.abc import Callable

import pytest

from jupiterd.cluster.training.sync_interval import MOST_WAITED, EndedRound, paced_steps

PLANNED = 15

Elapsed = Callable[[float], float]
"""How long a round takes, of the time that its steps take."""


def paced(rounds: int, step_s: float, elapsed: Elapsed, lag: int = 1) -> list[EndedRound]:
    """So many rounds, each as long as it was paced when as many as are open had ended."""
    lengths, ended = [PLANNED] * lag, list[EndedRound]()
    for number in range(rounds):
        trained_s = lengths[number] * step_s
        ended.append(EndedRound(lengths[number], trained_s, elapsed(trained_s)))
        lengths.append(paced_steps(PLANNED, lengths[-1], ended[-1], lag))
    return ended


def steps(ended: list[EndedRound]) -> list[int]:
    return [each.steps for each in ended]


def waited(each: EndedRound) -> float:
    """The share of a round's time."""
    return 1 - each.trained_s / each.elapsed_s


def test_where_nothing_was_measured_rounds_stay_as_they_are() -> None:
    assert paced_steps(PLANNED, PLANNED, None) == PLANNED
    assert paced_steps(PLANNED, 40, None) == 40
    assert paced_steps(50, 40, None) == 50


def test_exchanges_that_cost_little_change_nothing() -> None:
    assert steps(paced(9, 1.0, lambda trained_s: trained_s + 0.5)) == [PLANNED] * 9


@pytest.mark.parametrize("exchange_s", [0.1, 0.2])
def test_rounds_grow_until_waiting_islands_wait_for_a_twentieth_of_the_time(
    exchange_s: float,
) -> None:
    rounds = paced(20, 0.01, lambda trained_s: trained_s + exchange_s)
    assert steps(rounds[:5]) == [15, 30, 60, 120, steps(rounds)[4]]
    assert len({*steps(rounds[7:])}) == 1, "and they stay like that"
    assert 0.9 * MOST_WAITED < waited(rounds[-1]) < 1.001 * MOST_WAITED


def test_rounds_of_islands_that_train_on_grow_until_an_exchange_fits_into_one() -> None:
    rounds = paced(40, 0.01, lambda trained_s: max(trained_s, 0.4), lag=2)
    assert 38 <= min(steps(rounds)[8:]) <= max(steps(rounds)[8:]) <= 42
    assert all(waited(each) <= 1.001 * MOST_WAITED for each in rounds[8:])


@pytest.mark.parametrize("lag", [1, 2])
def test_a_single_delay_doubles_a_round_at_most_and_is_forgotten_bit_by_bit(lag: int) -> None:
    delays = iter([0.0, 0.0, 3_600.0])
    rounds = paced(30, 1.0, lambda trained_s: trained_s + next(delays, 0.0), lag)
    told = steps(rounds)[2 + lag :]
    assert told[0] == 2 * PLANNED
    assert told == sorted(told, reverse=True)
    assert told[-1] == PLANNED


def test_a_round_that_is_longer_than_an_exchange_needs_gets_shorter_bit_by_bit() -> None:
    assert paced_steps(PLANNED, 100, EndedRound(100, 98.0, 99.0)) == 95
    assert paced_steps(PLANNED, 100, EndedRound(100, 98.0, 99.0), lag=2) == 95
    assert paced_steps(99, 100, EndedRound(100, 98.0, 99.0)) == 99, "the planner's is the least"


def test_islands_that_train_on_keep_rounds_in_which_they_wait_for_a_little() -> None:
    assert paced_steps(PLANNED, 100, EndedRound(100, 96.0, 100.0), lag=2) == 100
    assert paced_steps(PLANNED, 100, EndedRound(50, 49.0, 49.5), lag=2) == 100, (
        "it is longer already"
    )
    assert paced_steps(PLANNED, 100, EndedRound(90, 60.0, 70.0), lag=2) == 105


def test_no_round_is_longer_than_500_steps() -> None:
    assert max(steps(paced(30, 0.001, lambda trained_s: trained_s + 5.0))) == 500
