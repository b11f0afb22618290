"""Islands end their training by the rules of a gang, at outer steps."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from jupiterd.cycle.islands.outer_horizon import MergedLoss, decided, is_scored, places
from jupiterd.cycle.islands.outer_orders import (
    LAGS,
    Member,
    OuterOrder,
    OuterTraining,
    first_orders,
    is_over,
    next_order,
)
from jupiterd.cycle.islands.outer_round import Closing
from jupiterd.cycle.training.held_out_measures import sequences_to_score
from jupiterd.cycle.training.horizon import Horizon, end_step, schedule
from jupiterd.cycle.training.plan import TrainPlan
from tests.unit.cycle.training.test_horizon import SEQUENCES, growing, walked

TWO = (Member("a"), Member("b"))
Loss = Callable[[int], float]


@dataclass
class Line:
    """Outer steps of two islands, as a leader takes them; what it goes by lies in them alone."""

    plan: TrainPlan
    loss: Loss
    every: int = 20
    lag: int = 1
    sequences: int = SEQUENCES
    orders: list[OuterOrder] = field(default_factory=list[OuterOrder])
    horizons: list[Horizon] = field(default_factory=list[Horizon])
    scored: list[int] = field(default_factory=list[int])
    """Of each outer step, what its merged weights contain, where they are scored."""

    def walk(self) -> Horizon:
        """Take steps to the end; return what is decided with the last weights of all."""
        self.orders = first_orders(self.training(Horizon()), TWO, self.every)
        self.horizons, self.scored = [Horizon()] * self.lag, [0] * self.lag
        while not is_over(self.orders[-self.lag :]):
            self.take()
        last = self.horizons[-1]
        return last.with_loss(self.scored[-1], self.loss(self.scored[-1]))

    def training(self, horizon: Horizon) -> OuterTraining:
        curve, batch = schedule(self.plan, horizon), self.plan.batch_sequences
        ended = horizon.ended
        return OuterTraining(
            curve, batch, lag=self.lag, places=places(self.plan, horizon), ended=ended
        )

    def take(self) -> None:
        rounds = self.orders[-self.lag :]
        last, merged = rounds[-1], rounds[0].first_step + rounds[0].steps
        told = [MergedLoss(step, self.loss(step)) for step in self.scored[-1:] if step]
        begins = last.first_step + last.steps
        horizon = decided(self.plan, self.horizons[-1], told * 2, begins)
        closing = Closing(("a", "b"), (1, 1))
        order = next_order(self.training(horizon), rounds, closing, TWO, self.every)
        asked = max(horizon.step, *self.scored[-self.lag :])
        batch, scored = self.plan.batch_sequences, sequences_to_score(self.sequences)
        is_due = is_scored(self.plan, horizon, merged, asked, scored, batch // 2)
        self.orders.append(order)
        self.horizons.append(horizon)
        self.scored.append(merged if is_due else 0)


@pytest.mark.parametrize("lag", LAGS.values(), ids=LAGS)
@pytest.mark.parametrize("every", [7, 20, 33])
def test_the_trunk_grows_as_far_as_a_gangs_and_ends_one_round_later(every: int, lag: int) -> None:
    plan = growing()

    def loss(step: int) -> float:
        return 5 - min(step, 180) / 1000

    line = Line(plan, loss, every, lag)
    horizon, of_a_gang = line.walk(), walked(plan, loss)
    assert of_a_gang.decay_from == 248
    assert 0 < horizon.decay_from - 248 <= lag * every
    end = end_step(plan, horizon)
    assert end == horizon.decay_from + plan.decay_after(horizon.decay_from)
    assert sum(order.steps for order in line.orders) == line.scored[-1] == end
    assert {*places(plan, Horizon())[:4]} <= {*line.scored}, "of each place there is a loss"


@pytest.mark.parametrize("lag", LAGS.values(), ids=LAGS)
def test_while_the_loss_falls_islands_take_all_steps_and_else_those_of_four_passes(
    lag: int,
) -> None:
    plan = growing()
    line = Line(plan, lambda step: 5 - step / 1000, lag=lag)
    assert line.walk().best_step == sum(order.steps for order in line.orders) == plan.steps == 640
    line = Line(plan, lambda _: 0.0, lag=lag)
    horizon = line.walk()
    decay_from = horizon.decay_from
    assert 128 < decay_from <= 128 + lag * line.every, "nothing could be scored"
    assert sum(order.steps for order in line.orders) == end_step(plan, horizon)


@pytest.mark.parametrize("lag", LAGS.values(), ids=LAGS)
def test_where_it_rises_for_good_training_ends_early_and_the_best_step_is_named(lag: int) -> None:
    plan = growing()
    line = Line(plan, lambda step: 5 + abs(step - 440) / 100, lag=lag, sequences=4)
    horizon = line.walk()
    ended = sum(order.steps for order in line.orders)
    assert abs(horizon.best_step - 440) <= line.every
    assert horizon.ended == ended == end_step(plan, horizon)
    assert horizon.decay_from < ended < horizon.decay_from + plan.decay_after(horizon.decay_from)


def test_the_rate_of_steps_that_were_given_out_does_not_change_by_what_is_decided_later() -> None:
    plan = growing()
    line = Line(plan, lambda step: 5 - min(step, 180) / 1000, lag=2)
    line.walk()
    for order, then in zip(line.orders, line.horizons, strict=True):
        for later in line.horizons[line.horizons.index(then) :]:
            for step in range(order.first_step, order.first_step + order.steps):
                rate = schedule(plan, then).learning_rate(step)
                assert schedule(plan, later).learning_rate(step) == pytest.approx(rate)


def test_another_leader_goes_on_with_what_the_outer_steps_say() -> None:
    plan = growing()

    def loss(step: int) -> float:
        return 5 - min(step, 300) / 1000 + math.sin(step) / 500

    whole = Line(plan, loss)
    end = whole.walk()
    for cut in range(1, len(whole.orders)):
        other = Line(plan, loss, orders=whole.orders[:cut], scored=whole.scored[:cut])
        other.horizons = [Horizon.of(each.to_plain()) for each in whole.horizons[:cut]]
        while not is_over(other.orders[-1:]):
            other.take()
        assert (other.orders, other.horizons[-1]) == (whole.orders, whole.horizons[-1])
    assert end.step == end_step(plan, end)


def test_what_is_told_twice_or_late_decides_nothing_more() -> None:
    plan = growing()
    told = [MergedLoss(40, 5.0), MergedLoss(80, 4.5)]
    horizon = decided(plan, Horizon(), [*told, *told], 90)
    assert (horizon.step, horizon.best_step, horizon.worse) == (80, 80, 0)
    assert decided(plan, horizon, [MergedLoss(40, 9.0)], 100) == horizon
    assert decided(plan, Horizon(), [], 100) == Horizon()


def test_steps_that_were_asked_for_are_taken_by_rounds_as_long_as_ever() -> None:
    plan = growing().model_copy(update={"extends_by_steps": 0, "least_steps": 0})
    line = Line(plan, lambda step: 5 + step / 100)
    horizon = line.walk()
    assert {order.steps for order in line.orders[:-1]} == {line.every}
    assert (horizon.ended, horizon.best_step) == (0, next(step for step in line.scored if step))
    assert sum(order.steps for order in line.orders) == plan.steps


def test_weights_are_scored_so_seldom_that_the_smallest_island_loses_little_time() -> None:
    plan = growing().model_copy(update={"extends_by_steps": 0})
    horizon = Horizon()

    def first_due(batch: int) -> int:
        return next(s for s in range(1, 640) if is_scored(plan, horizon, s, 0, 16, batch))

    assert first_due(4) == 67, "16 forward passes are a fiftieth of 67 steps of 4"
    assert first_due(2) == 134
    assert first_due(1) == 267
