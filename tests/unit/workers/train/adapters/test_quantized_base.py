"""Adapters beside quantized weights, on MLX."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from jupiterd.cycle.training.adapters.adapter_size import frozen_bytes
from jupiterd.cycle.training.plan import ModelShape
from jupiterd.errors import UsageError
from jupiterd.workers.training_engine import TrainingEngine
from tests.support.workers.tiny_run import tiny_shape
from tests.unit.workers.train.adapters.test_adapter_engines import base_of, losses, on_mlx, shape_of

mx = pytest.importorskip("mlx.core")
pytestmark = pytest.mark.mlx

DISTANCE = {"8bit": 0.002, "4bit": 0.05}
"""How far losses of 20 steps may lie from those beside the whole weights, in nats a token."""


def wide_shape() -> ModelShape:
    return tiny_shape(hidden=64, ff=128, heads=2, kv_heads=1, head_dim=32)


def parameters_of(engine: Any) -> Mapping[str, Any]:
    from mlx.utils import tree_flatten

    return dict(tree_flatten(engine._model._module.inner.parameters()))


def dequantized(engine: TrainingEngine, path: str, bits: int) -> NDArray[np.float32]:
    held = parameters_of(engine)
    parts = (held[f"{path}.linear.{name}"] for name in ("weight", "scales", "biases"))
    return np.array(mx.dequantize(*parts, group_size=64, bits=bits).astype(mx.float32))


@pytest.mark.parametrize("quantize", DISTANCE)
def test_losses_fall_as_beside_the_whole_weights(quantize: str):
    whole = losses(on_mlx(wide_shape(), "rank=4"))
    found = losses(on_mlx(wide_shape(), f"rank=4,quantize={quantize}"))
    assert found[-1] < found[0] - 0.1
    assert found == pytest.approx(whole, abs=DISTANCE[quantize])
    assert found != whole


@pytest.mark.parametrize(("quantize", "error"), [("8bit", 0.01), ("4bit", 0.12)])
def test_matrices_in_layers_are_quantized_and_nothing_else_is(quantize: str, error: float):
    shape = wide_shape()
    engine = on_mlx(shape, f"rank=4,quantize={quantize}")
    bits = int(quantize[0])
    path = "model.layers.1.mlp.down_proj"
    given = base_of(shape)[f"{path}.weight"]
    off = np.linalg.norm(dequantized(engine, path, bits) - given) / np.linalg.norm(given)
    assert 0 < off < error
    held = parameters_of(engine)
    assert held["model.embed_tokens.weight"].dtype == mx.float32
    assert sum("scales" in name for name in held) == 7 * shape.layers


def test_the_same_bits_lie_in_fp32_and_in_bf16():
    engines = [
        on_mlx(wide_shape(), "rank=4,quantize=4bit", precision=precision)
        for precision in ("fp32", "bf16")
    ]
    path = "model.layers.0.self_attn.q_proj"
    one, other = (dequantized(each, path, 4) for each in engines)
    first, second = (np.array(parameters_of(e)[f"{path}.linear.weight"]) for e in engines)
    assert np.array_equal(first, second)
    assert one == pytest.approx(other, abs=4e-4)


def test_a_run_goes_on_bit_for_bit_beside_quantized_weights():
    lora = "rank=4,quantize=4bit"
    through = on_mlx(wide_shape(), lora)
    losses(through, 6)
    first, second = on_mlx(wide_shape(), lora), on_mlx(wide_shape(), lora)
    losses(first, 3)
    second.load_weights(first.weights())
    second.load_moments(first.moments(), 3)
    losses(second, 3)
    for name, values in through.weights().items():
        assert np.array_equal(values, second.weights()[name])


def test_logits_are_told_of_a_quantized_model():
    engine = on_mlx(wide_shape(), "rank=4,quantize=8bit")
    whole = on_mlx(wide_shape(), "rank=4")
    tokens = np.arange(1, 9)
    found = engine.logits(tokens, engine.weights())
    assert found == pytest.approx(whole.logits(tokens, whole.weights()), abs=0.02)


def test_the_plan_counts_what_quantized_weights_take():
    shape = wide_shape()
    engine = on_mlx(shape, "rank=4,quantize=4bit")
    assert engine.adapter is not None
    own = sum(v.nbytes for n, v in parameters_of(engine).items() if "lora" not in n)
    assert frozen_bytes(shape, engine.adapter, 4, "mlx") == own


def test_a_model_whose_matrices_lie_turned_is_refused():
    with pytest.raises(UsageError, match=r"--quantize: the files of this model have .*c_attn"):
        on_mlx(shape_of("gpt2"), "rank=4,quantize=4bit")
