"""One rank of a model that is cut: what it takes of memory, and what it refuses."""

import gc
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from transformers import AutoConfig

from jupiterd.cycle.training.adapters.adapter import parse_adapter
from jupiterd.cycle.training.engine_options import DeviceAbilities
from jupiterd.cycle.training.memory import memory_need
from jupiterd.cycle.training.mlx_proven import PROVEN
from jupiterd.cycle.training.partition.partition import Partition
from jupiterd.cycle.training.partition.partition_memory import need_of_part
from jupiterd.cycle.training.plan import ModelShape, shape_of_config
from jupiterd.errors import UsageError
from jupiterd.workers.training_engine import MicroBatch
from tests.bench.models.cases import cases_of
from tests.support.workers.tiny_engine import tiny_plan
from tests.support.workers.tiny_run import tiny_shape

mx = pytest.importorskip("mlx.core")
pytestmark = [pytest.mark.mlx, pytest.mark.timeout(120)]

SEQUENCES = 2
MANY_LAYERS = tiny_shape(
    hidden=256, layers=8, ff=768, heads=4, kv_heads=2, head_dim=64, vocab_size=2048, seq_len=64
)
MANY_WORDS = tiny_shape(
    hidden=256, layers=4, ff=768, heads=4, kv_heads=2, head_dim=64, vocab_size=8192, seq_len=64,
    tied=False,
)  # fmt: skip
LONG = tiny_shape(
    hidden=128, layers=4, ff=384, heads=4, kv_heads=2, head_dim=32, vocab_size=1024, seq_len=512
)


def rank_alone(shape: ModelShape, partition: Partition, rank: int = 0, **options: Any) -> Any:
    """Return the engine of a rank whose neighbours send zeros, whatever they get."""
    from jupiterd.workers.train.mlx.made_engine import made_engine
    from jupiterd.workers.train.mlx.ring import Ring

    class Pretended(Ring):
        def pass_on(self, numbers: Any, expected: int) -> Any:
            received = mx.zeros((expected,))
            mx.eval(received)
            return received

        def gather(self, values: Sequence[float]) -> Sequence[Sequence[float]]:
            return [list(values)] * self.world_size

    ring = Pretended(rank, len(partition.parts))
    plan = tiny_plan(shape, micro_batch_sequences=SEQUENCES, batch_sequences=12, **options)
    return made_engine(shape, plan, 0, ring, partition)


def batch(shape: ModelShape) -> MicroBatch:
    ids = np.random.default_rng(3).integers(
        1, min(300, shape.vocab_size), (SEQUENCES, shape.seq_len + 1)
    )
    return MicroBatch(ids[:, :-1], ids[:, 1:])


@pytest.mark.parametrize(
    ("shape", "stage", "parts"),
    [
        pytest.param(MANY_LAYERS, 2, (24, 12), marks=pytest.mark.full),
        pytest.param(MANY_LAYERS, 3, (24, 12), marks=pytest.mark.full),
        pytest.param(MANY_WORDS, 1, (24, 12), marks=pytest.mark.full),
        pytest.param(MANY_WORDS, 2, (12, 24), marks=pytest.mark.full),
        pytest.param(MANY_WORDS, 3, (12, 24), marks=pytest.mark.full),
        (MANY_WORDS, 3, (1, 1, 1, 1)),
        pytest.param(LONG, 2, (24, 12), marks=pytest.mark.full),
        pytest.param(LONG, 3, (1, 1, 1, 1), marks=pytest.mark.full),
    ],
)
def test_a_rank_takes_as_much_memory_as_is_planned(
    shape: ModelShape, stage: int, parts: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
):
    from jupiterd.workers.train.mlx import mlx_optimizer

    # Of a large model what is updated at a time is little.
    monkeypatch.setattr(mlx_optimizer, "AT_A_TIME_BYTES", 1 << 20)
    gc.collect()  # or what an earlier test has left goes while this one measures
    before, partition = mx.get_active_memory(), Partition(stage, parts)
    engine = rank_alone(shape, partition, gradient_checkpointing="off")
    mx.set_memory_limit(1 << 40)  # it waits for nothing, as on a machine with room
    engine.step([batch(shape)], 1e-3)
    mx.reset_peak_memory()
    engine.step([batch(shape), batch(shape)], 1e-3)
    taken = mx.get_peak_memory() - before
    whole = memory_need(
        shape,
        tiny_plan(shape, micro_batch_sequences=SEQUENCES),
        "fp32",
        gradient_checkpointing=stage > 1,
        device=DeviceAbilities("mlx", "cpu", 0),
    )
    need = need_of_part(whole, shape, stage, partition.share(0), len(parts), "mlx")
    assert need.on_device == pytest.approx(taken, rel=0.1)


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_the_pieces_of_all_ranks_are_the_whole_state(stage: int):
    shape, parts = tiny_shape(), (24, 0, 12)
    whole = rank_alone(shape, Partition(stage, (1,)))
    expected = {**whole.weights(), **whole.moments()}
    found = {name: np.full(values.size, np.nan) for name, values in expected.items()}
    for rank in range(len(parts)):
        for name, start, values in rank_alone(shape, Partition(stage, parts), rank).own_pieces():
            place = found[name][start : start + len(values)]
            assert np.isnan(place).all(), "no number lies with two ranks"
            place[:] = values
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values.ravel(), err_msg=name)


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_a_pass_is_tried_without_other_ranks_and_changes_nothing(stage: int):
    shape = tiny_shape()
    engine = rank_alone(shape, Partition(stage, (1, 2)))
    before = [piece.values.copy() for piece in engine.own_pieces()]
    assert engine.try_pass(batch(shape)) > 0
    engine.end_passes()
    for piece, values in zip(engine.own_pieces(), before, strict=True):
        np.testing.assert_array_equal(piece.values, values)


def test_what_cant_be_cut_is_refused_in_one_line():
    adapter: dict[str, Any] = {"adapter": parse_adapter("rank=4")}
    muon: dict[str, Any] = {"optimizer": "muon"}
    for options, word in ((muon, "Muon"), (adapter, "adapter")):
        with pytest.raises(UsageError, match=word) as refused:
            rank_alone(tiny_shape(), Partition(1, (1, 1)), **options)
        assert "--shard off" in refused.value.hint


def test_a_model_that_isnt_made_of_layers_in_a_row_is_refused(monkeypatch: pytest.MonkeyPatch):
    from mlx_lm.models import qwen3

    def skipping(self: Any, inputs: Any, cache: Any = None, input_embeddings: Any = None) -> Any:
        hidden = self.embed_tokens(inputs)
        first = self.layers[0](hidden, None, None)
        return self.norm(first + self.layers[1](hidden, None, None))

    monkeypatch.setattr(qwen3.Qwen3Model, "__call__", skipping)
    with pytest.raises(UsageError, match="layers that follow one another") as refused:
        rank_alone(tiny_shape(), Partition(3, (1, 1)))
    assert refused.value.hint == "--engine torch, or --shard off"


def test_no_rank_ever_holds_all_first_weights_where_they_are_cut():
    shape = tiny_shape(hidden=256, layers=8, ff=768, heads=4, head_dim=64, vocab_size=2048)
    before = mx.get_active_memory()
    mx.reset_peak_memory()
    engine = rank_alone(shape, Partition(3, (1, 3)))
    assert mx.get_active_memory() - before < 0.3 * sum(
        4 * np.prod(each) for each in engine.shapes.values()
    )
    assert mx.get_peak_memory() - before < 0.4 * sum(
        4 * np.prod(each) for each in engine.shapes.values()
    )


def losses(engine: Any, shape: ModelShape) -> list[float]:
    return [engine.step([batch(shape)], 1e-3)[0] for _ in range(4)]


def whole_engine(shape: ModelShape, **options: Any) -> Any:
    from jupiterd.workers.train.mlx.made_engine import made_engine
    from jupiterd.workers.train.mlx.ring import Ring

    plan = tiny_plan(shape, micro_batch_sequences=SEQUENCES, batch_sequences=12, **options)
    return made_engine(shape, plan, 0, Ring(0, 1))


@pytest.mark.full
@pytest.mark.parametrize("architecture", sorted(PROVEN))
def test_layer_by_layer_each_architecture_is_what_it_is_at_once(architecture: str):
    fields = next(cases_of(architecture)).config()
    config = AutoConfig.for_model(architecture, **fields).to_dict()
    shape = shape_of_config(architecture, config, tiny_shape().recipe)
    shape = shape.model_copy(update={"seq_len": 16})
    found = losses(rank_alone(shape, Partition(3, (1,))), shape)
    assert found == pytest.approx(losses(whole_engine(shape), shape), abs=1e-5)


def test_layer_by_layer_products_in_bf16_are_as_at_once():
    shape = tiny_shape()
    found = losses(rank_alone(shape, Partition(2, (1,)), precision="bf16"), shape)
    assert found == pytest.approx(losses(whole_engine(shape, precision="bf16"), shape), abs=1e-3)
    assert found != pytest.approx(losses(whole_engine(shape), shape), abs=1e-6)
