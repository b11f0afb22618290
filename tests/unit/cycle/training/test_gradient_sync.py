"""Ranks that no longer hold the same weights are found and named."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.training.gradient_sync import LENGTHS, TOLERANCE, Fingerprint, diverged

LENGTH = [1.0 + number for number in range(LENGTHS)]


def rank(weights: bytes = b"same", platform: str = "linux", stretch: float = 1.0) -> Fingerprint:
    return Fingerprint.of(platform, weights, [stretch * length for length in LENGTH])


def test_ranks_with_the_same_weights_are_in_sync() -> None:
    assert diverged([rank()] * 5) == ()


def test_the_one_rank_that_differs_is_named() -> None:
    assert diverged([rank(), rank(b"other"), rank()]) == (1,)
    assert diverged([rank(b"other"), rank(), rank()]) == (0,)


def test_of_two_that_differ_the_later_is_named() -> None:
    assert diverged([rank(), rank(b"other")]) == (1,)


def test_another_platform_may_round_another_way() -> None:
    mac = rank(b"rounded otherwise", "mac", 1 + TOLERANCE / 2)
    assert diverged([rank(), mac]) == ()


def test_another_platform_may_not_hold_other_weights() -> None:
    mac = rank(b"other", "mac", 1 + 3 * TOLERANCE)
    assert diverged([rank(), rank(), mac, mac]) == (2, 3)


def test_a_rank_that_leaves_its_platform_is_named() -> None:
    macs = [rank(b"m", "mac"), rank(b"m", "mac"), rank(b"other", "mac")]
    assert diverged([rank(), *macs]) == (3,)


def test_a_length_that_is_no_number_is_no_agreement() -> None:
    assert diverged([rank(), rank(b"m", "mac", float("nan"))]) == (1,)


@given(st.binary(), st.text())
def test_a_fingerprint_survives_its_way_as_float32(weights: bytes, platform: str) -> None:
    sent = Fingerprint.of(platform, weights, LENGTH)
    numbers = sent.to_numbers()
    arrived = struct.unpack(f"{len(numbers)}f", struct.pack(f"{len(numbers)}f", *numbers))
    assert Fingerprint.from_numbers(arrived) == sent
