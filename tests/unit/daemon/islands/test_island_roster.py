"""Which islands train, which are gone, and which have a part in the next round."""

from dataclasses import replace

import pytest

from jupiterd.cluster.facts.facts import CycleFailed, CycleStateSet
from jupiterd.cluster.ledger.cycle_state import STOPPED
from jupiterd.cluster.planning.engines import TORCH
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.cycle.islands.outer_orders import Member
from jupiterd.cycle.islands.outer_round import Closing
from jupiterd.errors import JupiterError
from jupiterd.protocol.training_values import PseudoGradient
from tests.support.daemon.two_islands import ONE, OTHER, STEP, A, B, TwoIslands

DEVICES = tuple(f"cuda:{number}" for number in range(8))
NONE_IN = Closing((), ())


def test_an_island_is_gone_when_none_of_its_machines_is_alive() -> None:
    two = TwoIslands()
    assert two.roster.lost(STEP) == []
    two.leave(B)
    assert two.roster.lost(STEP) == [OTHER]
    assert not two.roster.has_ended(OTHER), "who is away often comes back"
    assert two.roster.is_any_at_work()
    two.leave(A, B)
    assert not two.roster.is_any_at_work()


async def test_an_island_that_was_stopped_or_has_failed_is_gone() -> None:
    two = TwoIslands()
    await two.term.record(CycleStateSet(ONE, STOPPED, "asked for", 1))
    assert two.roster.has_ended(ONE)
    assert two.roster.lost(STEP) == [ONE]


async def test_when_all_islands_have_failed_the_error_of_the_last_ends_the_run() -> None:
    two = TwoIslands()
    await two.term.record(CycleFailed(ONE, "disk-full", "no room", ""))
    two.roster.check_any_left()
    await two.term.record(CycleFailed(OTHER, "disk-full", "no room on beta", ""))
    with pytest.raises(JupiterError, match="no room on beta"):
        two.roster.lost(STEP)


def test_who_has_a_part_in_the_next_round_is_in_or_has_caught_up() -> None:
    two = TwoIslands()
    second = replace(STEP, number=1)
    assert two.roster.taking_part(second, NONE_IN, {}) == []
    two.train(ONE, number=0)
    assert two.roster.taking_part(second, NONE_IN, {}) == [], "it hasn't caught up"
    two.train(ONE, number=1)
    assert two.roster.taking_part(second, NONE_IN, {}) == [ONE]
    received = {OTHER: PseudoGradient("s", 960, 1.0, 10.0)}
    assert two.roster.taking_part(second, NONE_IN, received) == [ONE, OTHER]
    adrift = Closing((), (), adrift=(ONE,))
    assert two.roster.taking_part(second, adrift, received) == [OTHER]
    two.leave(B)
    assert two.roster.taking_part(second, NONE_IN, received) == [ONE]


def test_an_island_that_was_away_has_the_speed_of_before_as_a_share_of_the_others() -> None:
    two = TwoIslands(replace(STEP, batches={ONE: 6, OTHER: 2}))
    received = {ONE: PseudoGradient("s", 960, 1.0, 10.0)}
    now = replace(STEP, batches={ONE: 8})
    speeds = two.roster.speeds((ONE, OTHER), now, received)
    assert speeds[ONE] == pytest.approx(96.0)
    assert speeds[OTHER] == pytest.approx(32.0)


def test_each_island_takes_part_with_its_ranks_as_far_as_a_step_has_sequences() -> None:
    two = TwoIslands(batch_sequences=6)
    gpus = Hardware("Linux", "x86_64", "cpu", 8, 1 << 34, (), (TORCH,), devices=DEVICES)
    two.machines.hardware_of = {A: gpus}.get
    started = [replace(each, engine=TORCH) for each in two.roster.started()]
    assert two.roster.members(started, (96.0, 0.0)) == [Member(ONE, 3, 96.0), Member(OTHER, 1, 0.0)]


def test_how_many_islands_were_planned_is_what_the_first_step_ordered() -> None:
    assert TwoIslands(replace(STEP, batches={ONE: 8})).roster.planned() == 1
    assert TwoIslands().roster.planned() == 2
