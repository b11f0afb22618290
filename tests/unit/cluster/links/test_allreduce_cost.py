"""What gradients and differences take over a wire: as the tables of physical limits say."""

import pytest

from jupiterd.cluster.links.allreduce_cost import (
    Wire,
    all_reduce_s,
    computed_share,
    exchange_s,
    inner_steps,
)
from jupiterd.cluster.values.interface_kind import InterfaceKind
from jupiterd.cluster.values.link_quality import LEAST_RTT_S, LinkQuality

GIGABIT, TEN_GIGABIT, THUNDERBOLT = (Wire(rate, 0.0) for rate in (117e6, 1.17e9, 2.5e9))
P124, P350, P1B = 124_000_000, 350_000_000, 1_000_000_000


@pytest.mark.parametrize(
    ("parameters", "number_bytes", "ranks", "wire", "seconds"),
    [
        (P124, 2, 2, GIGABIT, 2.1),
        (P124, 2, 4, GIGABIT, 3.2),
        (P124, 2, 8, GIGABIT, 3.7),
        (P124, 4, 4, GIGABIT, 6.4),
        (P124, 1, 4, GIGABIT, 1.6),
        (P350, 2, 4, GIGABIT, 9.0),
        (P350, 2, 8, GIGABIT, 10.5),
        (P350, 4, 4, GIGABIT, 18.0),
        (P1B, 2, 2, GIGABIT, 17.1),
        (P1B, 1, 4, GIGABIT, 12.8),
        (P1B, 4, 4, GIGABIT, 51.3),
        (P350, 2, 4, TEN_GIGABIT, 0.90),
        (P1B, 2, 4, TEN_GIGABIT, 2.56),
        (P350, 2, 4, THUNDERBOLT, 0.42),
        (P1B, 2, 4, THUNDERBOLT, 1.20),
    ],
)
def test_a_sum_takes_what_physics_says(
    parameters: int, number_bytes: int, ranks: int, wire: Wire, seconds: float
) -> None:
    found = all_reduce_s(parameters, number_bytes, ranks, [wire] * ranks)
    assert found == pytest.approx(seconds, rel=0.02)


def test_an_exchange_in_int8_brings_everybody_all_the_others_differences() -> None:
    assert exchange_s(P124, 4, [GIGABIT] * 6) == pytest.approx(3.2, rel=0.01)
    assert exchange_s(P124, 2, [GIGABIT]) == pytest.approx(
        all_reduce_s(P124, 1, 2, [GIGABIT]), 0.01
    )


def test_a_round_trip_counts_once_for_each_piece() -> None:
    slow = Wire(117e6, 0.05)
    assert all_reduce_s(P124, 4, 4, [GIGABIT, slow]) == pytest.approx(
        all_reduce_s(P124, 4, 4, [GIGABIT]) + 6 * 0.05
    )
    assert exchange_s(P124, 4, [slow]) == pytest.approx(exchange_s(P124, 4, [GIGABIT]) + 0.05)


def test_the_slowest_wire_holds_everybody_up() -> None:
    assert all_reduce_s(P124, 4, 3, [THUNDERBOLT, GIGABIT, THUNDERBOLT]) == all_reduce_s(
        P124, 4, 3, [GIGABIT]
    )


def test_one_machine_sends_nothing() -> None:
    assert all_reduce_s(P124, 4, 8, []) == exchange_s(P124, 1, []) == 0.0


def test_islands_wait_a_twentieth_of_the_time() -> None:
    step_s = 6 * P124 * 32_768 / 60e12
    sync_s = exchange_s(P124, 4, [GIGABIT]) / 2  # as a ring of bytes: the facts' table
    steps = inner_steps(sync_s, step_s)
    assert steps == pytest.approx(75, abs=1)
    assert 0.95 <= computed_share(steps, step_s, sync_s) < 0.951
    # The rows "outer loop" of the facts' table: 4 nodes at 60 and 10 TFLOP/s, 32k tokens each.
    assert computed_share(100, step_s, sync_s) == pytest.approx(0.962, abs=0.001)
    assert computed_share(30, step_s, sync_s) == pytest.approx(0.885, abs=0.001)
    assert computed_share(100, 6 * step_s, sync_s) == pytest.approx(0.994, abs=0.001)
    # fp32 instead of int8 is four times as much: about 300 steps for the same share.
    assert inner_steps(4 * sync_s, step_s) == pytest.approx(300, abs=5)


@pytest.mark.parametrize(("sync_s", "steps"), [(0.0, 15), (1e-9, 15), (10.0, 190), (1e9, 500)])
def test_steps_between_exchanges_have_bounds(sync_s: float, steps: int) -> None:
    assert inner_steps(sync_s, 1.0) == steps


def test_a_link_that_nobody_measured_is_taken_for_what_its_kind_usually_is() -> None:
    known = Wire.of(LinkQuality(InterfaceKind.ETHERNET, 0.004, 936e6))
    assert (known.bytes_per_s, known.rtt_s, known.is_measured) == (117e6, 0.004, True)
    guessed = Wire.of(LinkQuality(InterfaceKind.ETHERNET))
    assert (guessed.bytes_per_s, guessed.rtt_s, guessed.is_measured) == (125e6, LEAST_RTT_S, False)
