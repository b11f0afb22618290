"""What ranks are given to begin with, and to go on."""

from collections.abc import Mapping
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

GIVEN, MADE, ADAPTER = (ArtifactId(each * 64) for each in "acb")
STEP = TrainRound(ArtifactId("1" * 64), ArtifactId("2" * 64), ())


@pytest.mark.parametrize(
    ("lora", "from_checkpoint", "weights"),
    [("", "", True), ("", MADE, False), ("rank=4", "", True), ("rank=4", MADE, True)],
)
async def test_weights_are_given_to_begin_with_and_an_adapter_s_base_to_go_on_too(
    lora: str, from_checkpoint: str, *, weights: bool
) -> None:
    inputs = await _inputs({"start_from": GIVEN, "lora": lora}, from_checkpoint)
    assert (inputs.get("weights") == GIVEN) is weights
    assert inputs.get("checkpoint", "") == from_checkpoint
    assert "adapter" not in inputs


async def _inputs(said: Mapping[str, str], from_checkpoint: str) -> Mapping[str, ArtifactId]:
    term, state = FakeTerm(), CycleState()
    asked = {**training().settings, **said}
    state.apply(replace(training(), settings=asked), (1, NODES[0], "u", 1))
    term.state.cycles[CYCLE] = state
    trained = TrainedRound(CYCLE, 1, tiny_shape(), derive(tiny_shape(), 1))
    orders = RankOrders(term, FakeMachines(), FakeReach(), FakeCalls(), trained)
    choice = EngineChoice(TORCH, NODES[:2], "as asked")
    gang_plan = GangPlan(1, choice, from_checkpoint, 3, 0.0, (4, 4))
    return await orders.inputs(STEP, gang_plan)


@pytest.mark.parametrize("from_checkpoint", ["", MADE])
async def test_an_island_of_a_later_round_begins_with_an_adapter_beside_its_base(
    from_checkpoint: str,
) -> None:
    said = {"start_from": GIVEN, "lora": "rank=4", "adapter_from": ADAPTER}
    inputs = await _inputs(said, from_checkpoint)
    assert inputs["weights"] == GIVEN
    assert inputs.get("adapter", "") == ("" if from_checkpoint else ADAPTER)
