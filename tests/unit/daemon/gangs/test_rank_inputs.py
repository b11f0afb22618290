"""What ranks are given to begin with, and to go on."""

from dataclasses import replace

import pytest

from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.planning.engines import TORCH, EngineChoice
from jupiterd.cycle.phases.steps import TrainRound
from jupiterd.cycle.training.plan import derive
from jupiterd.daemon.gangs.rank_orders import RankOrders
from jupiterd.daemon.planning.gang_plan import GangPlan
from jupiterd.daemon.planning.trained_round import TrainedRound
from jupiterd.ids import ArtifactId
from tests.support.cluster.building import CYCLE, NODES, training
from tests.support.daemon.term_parts import FakeCalls, FakeMachines, FakeReach, FakeTerm
from tests.support.workers.tiny_run import tiny_shape

GIVEN, MADE = ArtifactId("a" * 64), ArtifactId("c" * 64)
STEP = TrainRound(ArtifactId("1" * 64), ArtifactId("2" * 64), ())


@pytest.mark.parametrize(
    ("lora", "from_checkpoint", "weights"),
    [("", "", True), ("", MADE, False), ("rank=4", "", True), ("rank=4", MADE, True)],
)
async def test_weights_are_given_to_begin_with_and_an_adapter_s_base_to_go_on_too(
    lora: str, from_checkpoint: str, *, weights: bool
) -> None:
    term, state = FakeTerm(), CycleState()
    asked = {**training().settings, "start_from": GIVEN, "lora": lora}
    state.apply(replace(training(), settings=asked), (1, NODES[0], "u", 1))
    term.state.cycles[CYCLE] = state
    trained = TrainedRound(CYCLE, 1, tiny_shape(), derive(tiny_shape(), 1))
    orders = RankOrders(term, FakeMachines(), FakeReach(), FakeCalls(), trained)
    choice = EngineChoice(TORCH, NODES[:2], "as asked")
    gang_plan = GangPlan(1, choice, from_checkpoint, 3, 0.0, (4, 4))
    inputs = await orders.inputs(STEP, gang_plan)
    assert (inputs.get("weights") == GIVEN) is weights
    assert inputs.get("checkpoint", "") == from_checkpoint
