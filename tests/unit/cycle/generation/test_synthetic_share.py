"""The share of synthetic text over the rounds."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.gate.proxy import Arm, compare
from jupiterd.cycle.generation.synthetic_share import ControlResult, share_after
from tests.support.cycle.gate_material import students


def control(round_number, gain_bpb):
    """Return a control in which the synthetic text saved so much with each of two seeds."""
    runs = students(mix=(2.5 - gain_bpb, 2.6 - gain_bpb), real=(2.5, 2.6))
    compared = compare(runs, Arm.MIX, Arm.REAL)
    assert compared is not None
    return ControlResult(round_number, compared)


HELPED, HARMED, NEITHER = 0.1, -0.1, 0.001


def test_it_begins_with_the_domains_and_never_above_the_cap():
    assert share_after([], 0.4, 0.6).share == 0.4
    assert share_after([], 0.4, 0.3).share == 0.3
    assert "no round's control has decided yet" in share_after([], 0.4, 0.6).reason


@pytest.mark.parametrize(
    ("gain", "share", "told"),
    [
        (HELPED, 0.45, "45.0%: it helped small students in round 2, so the share rose from 40.0%"),
        (HARMED, 0.2, "20.0%: it harmed small students in round 2, so the share fell from 40.0%"),
        (NEITHER, 0.4, "40.0%: round 2 showed neither that it helps nor that it harms"),
    ],
)
def test_it_follows_what_a_control_has_shown(gain, share, told):
    found = share_after([control(2, gain)], 0.4, 0.6)
    assert found.share == pytest.approx(share)
    assert found.reason.startswith(told)
    assert "bits per byte, between" in found.reason


def test_at_the_cap_it_stays_there():
    found = share_after([control(2, HELPED)], 0.3, 0.3)
    assert found.share == 0.3
    assert "there is never more than that" in found.reason


gains = st.lists(st.sampled_from([HELPED, HARMED, NEITHER]), max_size=20)


@given(gains, st.floats(0.0, 0.6), st.sampled_from([0.3, 0.6]), st.randoms())
def test_whatever_the_controls_show_it_is_a_share_below_the_cap(
    shown: list[float], start: float, cap: float, chance: random.Random
) -> None:
    controls = [control(number, gain) for number, gain in enumerate(shown, 1)]
    found = share_after(controls, start, cap)
    assert 0 <= found.share <= cap
    chance.shuffle(controls)
    assert share_after(controls, start, cap) == found
    lower = share_after([*controls, control(99, HARMED)], start, cap).share
    higher = share_after([*controls, control(99, HELPED)], start, cap).share
    assert lower <= found.share <= higher
    assert share_after([*controls, control(99, NEITHER)], start, cap).share == found.share
