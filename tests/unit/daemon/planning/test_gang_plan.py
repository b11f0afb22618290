"""Who trains, by roles and by what is in the way just now."""

from typing import cast

import pytest

from jupiterd.cluster.planning.placement import Seat
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.daemon.leader.leading import Leading
from jupiterd.daemon.planning.gang_plan import trainers
from jupiterd.ids import NodeId

A, B = NodeId("a" * 32), NodeId("b" * 32)
MACHINE = Hardware("Linux", "x86_64", "a CPU", 8, 16 << 30)


class Term:
    """As much of a term as the question takes: two nodes with an engine, and their roles."""

    def __init__(self, *roles: str) -> None:
        self._roles = roles

    def seats(self) -> list[Seat]:
        return [Seat(node, role, True, 0) for node, role in zip((A, B), self._roles, strict=True)]

    def hardware_of(self, _node: NodeId) -> Hardware:
        return MACHINE


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
    term = cast("Leading", Term(*roles))
    assert list(trainers(term, without=without)) == expected
