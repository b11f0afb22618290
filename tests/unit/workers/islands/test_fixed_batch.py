"""Logits of the batch that is the same everywhere: real engines, as they are and with faults."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from transformers.models.qwen3.configuration_qwen3 import Qwen3Config

from jupiterd.cycle.training.model_fingerprint import strangers
from jupiterd.cycle.training.plan import ModelShape
from jupiterd.workers.islands.fixed_batch import FixedBatch, tokens_of
from jupiterd.workers.train.first_weights import first_weights
from jupiterd.workers.train.model_config import model_config
from jupiterd.workers.train.torch.attention import FlashAttention, TorchAttention
from jupiterd.workers.train.torch.qwen3 import Norm, Qwen3
from jupiterd.workers.train.torch.torch_engine import TorchEngine
from jupiterd.workers.train.torch.torch_model import last_logits, make_model, without_flash
from jupiterd.workers.training_engine import Tensors, TrainingEngine
from tests.support.workers.tiny_engine import tiny_engine, tiny_plan
from tests.support.workers.tiny_run import SEQ_LEN, VOCAB, tiny_shape

STEP = "step 3"


def mlx_engine(shape: ModelShape | None = None, **changes: Any) -> TrainingEngine:
    pytest.importorskip("mlx.core")
    from jupiterd.workers.train.mlx.mlx_engine import MlxTrainingEngine
    from jupiterd.workers.train.mlx.ring import Ring

    return MlxTrainingEngine(shape or tiny_shape(), tiny_plan(**changes), 0, Ring(0, 1))


def weights() -> Tensors:
    """Weights as after some training: far larger than those that are drawn."""
    shapes = {name: each.shape for name, each in tiny_engine().weights().items()}
    drawn = first_weights(shapes, 7)
    return {name: each * (1.0 if each.ndim == 1 else 6.0) for name, each in drawn.items()}


def told(engine: TrainingEngine, given: Tensors) -> bytes:
    batch = FixedBatch(engine, SEQ_LEN)
    batch.pass_through(STEP, given)
    return batch.logits_at(STEP)


def as_they_are(engine: TorchEngine, given: Tensors) -> Tensors:
    del engine
    return given


def with_another_epsilon(engine: TorchEngine, given: Tensors) -> Tensors:
    for module in engine._model.modules():
        if isinstance(module, Norm):
            module._epsilon = 1e-5
    return given


def with_two_weights_swapped(engine: TorchEngine, given: Tensors) -> Tensors:
    del engine
    gate, up = (f"model.layers.1.mlp.{name}_proj.weight" for name in ("gate", "up"))
    return {**given, gate: given[up], up: given[gate]}


@pytest.mark.mlx
def test_mlx_and_torch_say_the_same_with_the_same_weights():
    given = weights()
    sides = {"m": told(mlx_engine(), given), "t": told(tiny_engine(), given)}
    assert len(sides["m"]) == 4 * VOCAB
    assert not strangers(sides, ())
    one, other = (np.frombuffer(each, "<f4") for each in sides.values())
    assert np.abs(one - other).max() < 2e-5, "there is room below what is allowed"


@pytest.mark.mlx
@pytest.mark.parametrize(
    ("plant", "rope_theta"),
    [(as_they_are, 1e4), (with_another_epsilon, 5e4), (with_two_weights_swapped, 5e4)],
)
def test_a_fault_of_one_side_shows(
    plant: Callable[[TorchEngine, Tensors], Tensors], rope_theta: float
):
    given = weights()
    faulty = tiny_engine(shape=tiny_shape(rope_theta=rope_theta))
    sides = {"m": told(mlx_engine(), given), "t": told(faulty, plant(faulty, given))}
    (apart,) = strangers(sides, {"m"}).values()
    assert apart.most > 3 * apart.allowed


@pytest.mark.mlx
def test_it_is_computed_in_fp32_whatever_training_computes_in():
    given = weights()
    plan = tiny_plan(precision="bf16", weights="bf16")
    sides = {
        "in bf16": told(tiny_engine(plan), given),
        "in fp32": told(tiny_engine(), given),
        "mlx in bf16": told(mlx_engine(precision="bf16"), given),
    }
    assert not strangers(sides, {"in fp32"})


def test_training_goes_on_with_its_own_weights():
    engine = tiny_engine()
    before = engine.weights()
    told(engine, weights())
    assert all((engine.weights()[name] == each).all() for name, each in before.items())


def test_logits_are_kept_for_the_rounds_that_may_be_open():
    engine = tiny_engine()
    batch = FixedBatch(engine, SEQ_LEN)
    for step in ("", "step 0", "step 1", "step 2"):
        batch.pass_through(step, weights())
    kept = [bool(batch.logits_at(step)) for step in ("", "step 0", "step 1", "step 2")]
    assert kept == [False, False, True, True]


def test_its_tokens_lie_all_over_the_vocabulary():
    for vocabulary in (257, 4096, 65_536):
        tokens = tokens_of(vocabulary, 128)
        assert len({*tokens.tolist()}) == 128
        assert tokens.max() < vocabulary
        assert {*(tokens * 8 // vocabulary).tolist()} == {*range(8)}


def test_a_model_whose_attention_is_flash_attns_computes_it_with_torchs():
    config = model_config(tiny_shape())
    assert isinstance(config, Qwen3Config)
    flash, plain = Qwen3(config, FlashAttention()), Qwen3(config, TorchAttention())
    given = {name: torch.from_numpy(each) for name, each in weights().items()}
    ids = torch.from_numpy(tokens_of(VOCAB, SEQ_LEN)[None])
    with without_flash(flash):
        assert torch.equal(last_logits(flash, ids, given), last_logits(plain, ids, given))
    assert isinstance(flash.model.layers[0].self_attn.attend, FlashAttention)


@pytest.mark.parametrize("architecture", ["gpt2", "llama"])
def test_a_model_of_transformers_is_called_with_other_weights_too(architecture: str):
    fields = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = fields | {"intermediate_size": 48, "max_position_embeddings": SEQ_LEN}
    shape = tiny_shape(
        architecture=architecture, kv_heads=2, config=config if architecture == "llama" else {}
    )
    one, other = (tiny_engine(tiny_plan(shape, seed=seed), shape) for seed in (1, 2))
    assert told(one, one.weights()) == told(other, one.weights())
    assert told(one, one.weights()) != told(one, other.weights())
    tokens = torch.from_numpy(tokens_of(VOCAB, SEQ_LEN)[None])
    with torch.no_grad():
        whole: Any = make_model(shape, 1).inner
        expected = whole(input_ids=tokens).logits[0, -1]
    assert np.allclose(np.frombuffer(told(one, one.weights()), "<f4"), expected, atol=1e-6)
