"""Liveness and leadership as one node sees them among 64, 256 and 1,000."""

import pytest

from jupiterd.cluster.membership.failure_detector import Liveness
from tests.simulation.crowds import TIMING, Crowd

SIZES = (64, 256, pytest.param(1000, marks=pytest.mark.full))
SETTLED_S = 4.0
NOTICED_S = TIMING.gone_s + TIMING.beat_s + 1.0
LOSS = 0.3


@pytest.mark.parametrize("size", SIZES)
def test_lost_packets_accuse_nobody_and_a_cut_off_tenth_is_heard_of_by_the_rest(
    size: int,
) -> None:
    crowd = Crowd(size, size, LOSS)
    crowd.run(SETTLED_S)
    for other in crowd.choose(0.1):
        other.is_cut_off = True
    crowd.run(TIMING.gone_s)
    assert len(crowd.thought(Liveness.ALIVE)) == size - 1
    assert not [change for change in crowd.changes if change.after is Liveness.GONE]
    assert crowd.led_at is None


@pytest.mark.parametrize("size", SIZES)
def test_the_dead_are_gone_in_time_and_nobody_else_and_somebody_leads(size: int) -> None:
    crowd = Crowd(size, size, LOSS)
    crowd.run(SETTLED_S)
    dead = {crowd.leader, *(other.node for other in crowd.choose(0.1))}
    for node in dead:
        crowd.others[node].is_dead = True
    crowd.run(NOTICED_S)
    assert crowd.thought(Liveness.GONE) == dead
    assert crowd.thought(Liveness.ALIVE) == set(crowd.others) - dead
    assert crowd.led_at is not None
    assert crowd.led_at <= SETTLED_S + TIMING.election_max_s + 2 * TIMING.answer_s + 1.0
