"""What a leader's clock tells of the rounds of islands."""

from dataclasses import replace

import pytest

from jupiterd.cluster.facts.facts import OuterStepTaken
from jupiterd.cluster.ledger.lww_registers import fact_hash
from jupiterd.cluster.training.sync_interval import EndedRound
from jupiterd.cycle.islands.outer_round import Closing
from jupiterd.daemon.islands import outer_round_timing
from jupiterd.daemon.islands.outer_round_timing import OuterRoundTiming
from jupiterd.protocol.training_values import PseudoGradient
from tests.support.cluster.building import outer_step

ONE, OTHER = "1" * 16, "2" * 16
WAYS = {
    ONE: PseudoGradient("", 100, 1.0, elapsed_s=8.0),
    OTHER: PseudoGradient("", 100, 1.0, elapsed_s=9.0),
}
ALL_IN = Closing((ONE, OTHER), (100, 100))


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(outer_round_timing, "now_s", found)
    return found


def taken(times: OuterRoundTiming, number: int, parent: str = "") -> OuterStepTaken:
    """A step that merges nothing, which this leader takes now."""
    return times.timed(replace(outer_step(number, parent), islands=(), pseudo_gradients=()), {})


def test_a_round_that_a_leader_has_seen_whole_tells_how_long_it_took(clock: Clock) -> None:
    times = OuterRoundTiming()
    first = taken(times, 0)
    second = taken(times, 1, fact_hash(first))
    clock.now_s += 9.5
    told = times.ended(fact_hash(second), second, ALL_IN, WAYS)
    assert told == EndedRound(second.steps, trained_s=9.0, elapsed_s=9.5)
    clock.now_s += 1.0
    assert taken(times, 2, fact_hash(second)).elapsed_s == 10.5


def test_the_first_round_and_one_that_another_leader_began_tell_nothing(clock: Clock) -> None:
    times = OuterRoundTiming()
    first = taken(times, 0)
    clock.now_s += 9.5
    assert times.ended(fact_hash(first), first, ALL_IN, WAYS) is None
    second = taken(times, 1, fact_hash(first))
    clock.now_s += 9.5
    assert OuterRoundTiming().ended(fact_hash(second), second, ALL_IN, WAYS) is None


def test_a_round_in_which_somebody_was_waited_for_in_vain_tells_nothing(clock: Clock) -> None:
    times = OuterRoundTiming()
    second = taken(times, 1, fact_hash(taken(times, 0)))
    clock.now_s += 90.0
    newest, alone = fact_hash(second), {ONE: WAYS[ONE]}
    late = Closing((ONE,), (100,), missing=(OTHER,))
    assert times.ended(newest, second, late, alone) is None
    told_twice = {**WAYS, OTHER: replace(WAYS[OTHER], elapsed_s=0.0)}
    assert times.ended(newest, second, ALL_IN, told_twice) is None
