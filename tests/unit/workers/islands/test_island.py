"""Islands that train apart and step together."""

from pathlib import Path

import numpy as np
import pytest

from jupiterd.protocol.training_values import RoundOrder
from jupiterd.workers.islands.compression import Kind
from jupiterd.workers.islands.flat import Vector
from jupiterd.workers.islands.island import IslandView
from jupiterd.workers.islands.outer_step import OuterSettings
from jupiterd.workers.tokens.shards import ShardSet
from jupiterd.workers.train.batches import RankBatches
from tests.support.workers.tiny_engine import BATCH, tiny_engine, tiny_plan
from tests.support.workers.tiny_run import make_inputs

RATE = 1e-2
ORDER = RoundOrder("step 1", 1, 1, 1, BATCH, "0-6")

NESTEROV, AVERAGE = OuterSettings(0.7, 0.9), OuterSettings(1.0, 0.0)


class Two:
    """Two islands over the tiny shape, which are given unlike batches."""

    def __init__(self, folder: Path, settings: OuterSettings, kind: Kind) -> None:
        shards = ShardSet(Path(make_inputs(folder)["shards"]))
        self.engines = [tiny_engine(), tiny_engine()]
        self.islands = [IslandView(engine, kind) for engine in self.engines]
        self.settings = settings
        self.batches = [RankBatches(shards, "s", 2 * BATCH, 2, rank, 2) for rank in range(2)]

    def train(self, step: int) -> None:
        for engine, batches in zip(self.engines, self.batches, strict=True):
            engine.step(list(batches.at(step * 2 * BATCH)), RATE)

    def meet(self) -> None:
        pseudo_gradients = [
            island.packer.packed(pseudo_gradient(island)) for island in self.islands
        ]
        for island in self.islands:
            island.take(island.merged(pseudo_gradients, [1, 1], self.settings))


def pseudo_gradient(island: IslandView) -> Vector:
    return island.base - island.end()


@pytest.mark.parametrize("kind", ["int8", "bf16", "fp32"])
def test_after_each_round_all_have_the_same_weights_and_keep_their_moments(
    kind: Kind, tmp_path: Path
):
    two = Two(tmp_path, NESTEROV, kind)
    for step in range(6):
        two.train(step)
        before = [engine.moments() for engine in two.engines]
        assert pseudo_gradient(two.islands[0]).any(), "they have learned something"
        two.meet()
        assert two.islands[0].state.digest() == two.islands[1].state.digest()
        for engine, island, moments in zip(two.engines, two.islands, before, strict=True):
            assert not pseudo_gradient(island).any(), "they train on from the new weights"
            assert all(np.array_equal(engine.moments()[name], moments[name]) for name in moments)


def test_the_average_is_that_of_the_weights(tmp_path: Path):
    two = Two(tmp_path, AVERAGE, "fp32")
    two.train(0)
    ends = [engine.weights() for engine in two.engines]
    two.meet()
    for name, weights in two.engines[0].weights().items():
        assert np.allclose(weights, (ends[0][name] + ends[1][name]) / 2, atol=1e-6), name


def test_what_was_trained_while_an_outer_step_was_on_its_way_is_carried_over(tmp_path: Path):
    two = Two(tmp_path, NESTEROV, "fp32")
    two.train(0)
    pseudo_gradients = [island.packer.packed(pseudo_gradient(island)) for island in two.islands]
    for island in two.islands:
        island.begin(ORDER)
    ends = [island.base for island in two.islands]
    two.train(1)
    for island, end in zip(two.islands, ends, strict=True):
        learned = -pseudo_gradient(island)
        assert not np.array_equal(island.base, island.state.weights), "it is measured from the end"
        island.take(island.merged(pseudo_gradients, [1, 1], NESTEROV), goes_on=True)
        assert np.array_equal(island.base, island.state.weights)
        assert np.allclose(-pseudo_gradient(island), learned, atol=1e-6), (
            "it counts for the next way"
        )
        assert learned.any()
        assert np.allclose(island.end(), island.state.weights + (island.end() - island.base))
        assert not np.allclose(island.base, end)
    assert two.islands[0].state.digest() == two.islands[1].state.digest()


def test_what_is_no_number_is_not_carried_over(tmp_path: Path):
    two = Two(tmp_path, NESTEROV, "fp32")
    island, engine = two.islands[0], two.engines[0]
    engine.load_weights({name: values * np.nan for name, values in engine.weights().items()})
    island.take(island.state, goes_on=True)
    assert np.array_equal(island.end(), island.state.weights)


def test_weights_in_bf16_lose_nothing_to_rounding_when_islands_meet(tmp_path: Path):
    shards = ShardSet(Path(make_inputs(tmp_path)["shards"]))
    plan = tiny_plan(weights="bf16", precision="bf16")
    engine = tiny_engine(plan)
    island = IslandView(engine, "fp32")
    engine.step(list(RankBatches(shards, "s", BATCH, 2).at(0)), RATE)
    island.take(island.merged([island.packer.packed(pseudo_gradient(island))], [1], NESTEROV))
    wanted = island.layout.tensors(island.state.weights)
    for name, rounded in engine.weights().items():
        exact = engine.exact_weights()[name]
        assert np.allclose(exact, wanted[name], rtol=2**-16, atol=1e-9), name
        if rounded.ndim > 1:
            assert not np.allclose(rounded, wanted[name], rtol=2**-12), "bf16 alone holds less"
    assert np.abs(pseudo_gradient(island)).max() < 2**-16 * np.abs(island.state.weights).max()
