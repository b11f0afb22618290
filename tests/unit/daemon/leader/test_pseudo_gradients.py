"""What a leader has been told of islands' ways."""

from dataclasses import replace

from jupiterd.daemon.leader.pseudo_gradients import PseudoGradients, ReportedPseudoGradient
from jupiterd.daemon.runtime.work_events import (
    PseudoGradientStored,
)
from jupiterd.ids import ArtifactId, CycleId, NodeId
from jupiterd.protocol.training_values import PseudoGradient

ISLAND = CycleId("1" * 16)
TOLD = ReportedPseudoGradient(
    PseudoGradientStored(ArtifactId("a" * 64), PseudoGradient("step 3", 9, 1.0, 2.5)),
    NodeId("n"),
    10.0,
)


def test_a_way_that_is_told_of_once_more_is_no_later_and_took_as_long_as_it_did() -> None:
    ways = PseudoGradients()
    ways.report(ISLAND, TOLD)
    again = replace(TOLD.stored, pseudo_gradient=PseudoGradient("step 3", 9, 1.0))
    ways.report(ISLAND, replace(TOLD, stored=again, at_s=20.0))
    assert ways.of(ISLAND, "step 3") == TOLD


def test_a_way_that_lies_elsewhere_by_now_is_looked_for_there() -> None:
    ways = PseudoGradients()
    ways.report(ISLAND, TOLD)
    moved = replace(TOLD, node=NodeId("m"), at_s=20.0)
    ways.report(ISLAND, moved)
    assert ways.of(ISLAND, "step 3") == moved
