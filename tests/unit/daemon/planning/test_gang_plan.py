"""Who trains, by roles and by what is in the way just now."""

import pytest

from jupiterd.cluster.planning.placement import Seat
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.daemon.planning.gang_plan import trainers
from jupiterd.ids import NodeId
from tests.support.daemon.term_parts import FakeMachines, FakePlacement

A, B = NodeId("a" * 32), NodeId("b" * 32)
MACHINE = Hardware("Linux", "x86_64", "a CPU", 8, 16 << 30)


@pytest.mark.parametrize(
    ("roles", "without", "expected"),
    [
        (("trainer", "hybrid"), frozenset[NodeId](), [A, B]),
        (("trainer", "idle"), frozenset[NodeId](), [A]),
        (("trainer", "hybrid"), frozenset({A}), [B]),
        (("trainer", "idle"), frozenset({A}), []),
        (("idle", "idle"), frozenset[NodeId](), [A]),
        (("idle", "idle"), frozenset({A}), [B]),
    ],
)
def test_nobody_trains_in_place_of_a_trainer_that_is_only_busy(
    roles: tuple[str, ...], without: frozenset[NodeId], expected: list[NodeId]
) -> None:
    seats = [Seat(node, role, True, 0) for node, role in zip((A, B), roles, strict=True)]
    placement = FakePlacement(FakeMachines({A: MACHINE, B: MACHINE}), seats)
    assert list(trainers(placement, without=without)) == expected
