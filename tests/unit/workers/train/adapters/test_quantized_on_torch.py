"""Adapters beside weights that bitsandbytes quantizes, on torch."""

import sys
from importlib.util import find_spec
from typing import Any, cast

import numpy as np
import pytest
import torch

from jupiterd.cycle.training.adapters.adapter import parse_adapter
from jupiterd.cycle.training.adapters.adapter_size import dequantized_bytes, frozen_bytes
from jupiterd.errors import MissingExtraError
from jupiterd.workers.train.torch.process_group import ProcessGroup
from jupiterd.workers.train.torch.torch_engine import TorchEngine
from jupiterd.workers.train.torch.torch_model import inner_model
from jupiterd.workers.train.torch.torch_quantized import QuantizedMatrix
from tests.support.workers.tiny_engine import tiny_plan
from tests.unit.workers.train.adapters.test_adapter_engines import base_of, losses, on_torch
from tests.unit.workers.train.adapters.test_dropout import parts
from tests.unit.workers.train.adapters.test_quantized_base import wide_shape
from tests.unit.workers.train.architectures import test_mlx_models
from tests.unit.workers.train.architectures.test_mlx_models import batch

needs_bitsandbytes = pytest.mark.skipif(
    find_spec("bitsandbytes") is None, reason="needs the extra quantized"
)
DISTANCE = {"8bit": 0.003, "4bit": 0.05}
"""How far losses of 20 steps may lie from those beside the whole weights, in nats a token."""
ERROR = {"8bit": 0.01, "4bit": 0.12}
"""How far a matrix may lie from its own, of its length."""


def matrices(engine: TorchEngine) -> dict[str, QuantizedMatrix]:
    modules = inner_model(engine._model).named_modules()
    return {path: each for path, each in modules if isinstance(each, QuantizedMatrix)}


def with_dequantized(engine: TorchEngine, shape: Any, lora: str, **options: str) -> TorchEngine:
    """Return an engine beside the very numbers that another's bits stand for."""
    numbers = {n: torch.from_numpy(v.copy()) for n, v in base_of(shape).items()}
    for path, each in matrices(engine).items():
        found = each(torch.eye(each.size[1])).T - (0 if each.bias is None else each.bias[:, None])
        name = f"{path.removesuffix('.base')}.weight"
        numbers[name] = found.T if each._lies_turned else found
    plan = tiny_plan(shape, adapter=parse_adapter(lora), **options)
    other = TorchEngine(shape, plan, 0, ProcessGroup(0, 1), "cpu")
    other.load_base({name: t.detach().numpy() for name, t in numbers.items()})
    other.begin(has_same_weights=True)
    return other


@needs_bitsandbytes
@pytest.mark.parametrize("quantize", DISTANCE)
def test_losses_fall_as_beside_the_whole_weights(quantize: str):
    whole = losses(on_torch(wide_shape(), "rank=4"))
    found = losses(on_torch(wide_shape(), f"rank=4,quantize={quantize}"))
    assert found[-1] < found[0] - 0.1
    assert found == pytest.approx(whole, abs=DISTANCE[quantize])
    assert found != whole


@needs_bitsandbytes
@pytest.mark.parametrize("kind", ["llama", "gpt2", "gpt_neox"])
@pytest.mark.parametrize("quantize", DISTANCE)
def test_it_learns_as_beside_the_numbers_that_the_bits_stand_for(kind: str, quantize: str):
    wide = {"gpt2": {"n_embd": 64, "n_head": 2}}
    shape = shape_of(kind, wide.get(kind, {"hidden_size": 64, "intermediate_size": 128}))
    ours = on_torch(shape, f"rank=4,quantize={quantize}")
    theirs = with_dequantized(ours, shape, "rank=4")
    assert matrices(ours)
    assert losses(ours, 6) == pytest.approx(losses(theirs, 6), abs=2e-6)
    for name, values in ours.weights().items():
        assert np.allclose(values, theirs.weights()[name], atol=1e-5), name


def shape_of(kind: str, sizes: dict[str, int]) -> Any:
    shape = test_mlx_models.shape_of(kind)
    from jupiterd.cycle.training.plan import shape_of_config

    config = {**shape.config, **sizes}
    found = shape_of_config(kind, config, shape.recipe)
    return found.model_copy(update={"seq_len": shape.seq_len})


@needs_bitsandbytes
@pytest.mark.parametrize("quantize", DISTANCE)
def test_matrices_in_layers_are_quantized_and_nothing_else_is(quantize: str):
    shape = wide_shape()
    engine = on_torch(shape, f"rank=4,quantize={quantize}")
    found = matrices(engine)
    assert len(found) == 7 * shape.layers
    path = "model.layers.1.mlp.down_proj"
    given, held = base_of(shape)[f"{path}.weight"], found[f"{path}.base"]
    numbers = held(torch.eye(held.size[1])).T.numpy()
    assert 0 < np.linalg.norm(numbers - given) / np.linalg.norm(given) < ERROR[quantize]
    kept = {
        n: v for n, v in base_of(shape).items() if f"{n.removesuffix('.weight')}.base" not in found
    }
    frozen = dict(inner_model(engine._model).named_parameters())
    assert "model.embed_tokens.weight" in kept
    for name, values in kept.items():
        assert np.array_equal(frozen[name].numpy(force=True), values)


@needs_bitsandbytes
def test_a_matrix_of_the_base_is_never_there_in_full_before_it_is_read():
    shape = wide_shape()
    plan = tiny_plan(shape, adapter=parse_adapter("rank=4,quantize=4bit"))
    engine = TorchEngine(shape, plan, 0, ProcessGroup(0, 1), "cpu")
    model = inner_model(engine._model)
    assert not any(each.is_meta for each in (*model.parameters(), *model.buffers()))
    largest = max(each.numel() for n, each in model.named_parameters() if ".layers." in n)
    assert largest < 64 * 64, "factors alone"


@needs_bitsandbytes
@pytest.mark.parametrize("quantize", DISTANCE)
def test_all_ranks_have_the_same_bits_whatever_they_multiply_in(quantize: str):
    lora = f"rank=4,quantize={quantize}"
    ours, theirs = (on_torch(wide_shape(), lora, precision=each) for each in ("fp32", "bf16"))
    assert ours.base_digest() == theirs.base_digest() != ""
    assert on_torch(wide_shape(), "rank=4").base_digest() == ""
    other = {
        n: v + (n == "model.layers.1.mlp.up_proj.weight") for n, v in base_of(wide_shape()).items()
    }
    plan = tiny_plan(wide_shape(), adapter=parse_adapter(lora))
    third = TorchEngine(wide_shape(), plan, 0, ProcessGroup(0, 1), "cpu")
    third.load_base(other)
    assert third.base_digest() != ours.base_digest()


@needs_bitsandbytes
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, as it compiles
@pytest.mark.parametrize("options", [{"gradient_checkpointing": "on"}, {"compile": "on"}])
def test_it_computes_the_same_a_second_time_and_compiled(options: dict[str, str]):
    lora = "rank=4,quantize=4bit"
    found = losses(on_torch(wide_shape(), lora, **options), 4)
    assert found == pytest.approx(losses(on_torch(wide_shape(), lora), 4), abs=1e-5)


@needs_bitsandbytes
def test_nothing_dequantized_is_kept_for_the_way_back():
    engine = on_torch(wide_shape(), "rank=4,quantize=4bit")
    (held, *_) = matrices(engine).values()
    saved: list[torch.Tensor] = []

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        saved.append(tensor)
        return tensor

    x = torch.randn(3, held.size[1], requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        found = held(x)
    assert {each.data_ptr() for each in saved} == {held.packed.data_ptr(), held.scales.data_ptr()}
    gradient = torch.randn_like(found)
    found.backward(gradient)
    matrix = held(torch.eye(held.size[1])).T
    assert torch.allclose(cast("torch.Tensor", x.grad), gradient @ matrix, atol=1e-6)


@needs_bitsandbytes
def test_products_are_computed_in_what_the_device_multiplies_in():
    engine = on_torch(wide_shape(), "rank=4,quantize=4bit")
    (held, *_) = matrices(engine).values()
    x = torch.randn(3, held.size[1])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = held(x)
    assert found.dtype == torch.bfloat16
    assert torch.allclose(found.float(), held(x), atol=0.05)


@needs_bitsandbytes
def test_a_run_goes_on_bit_for_bit_beside_quantized_weights():
    lora = "rank=4,quantize=4bit"
    through = on_torch(wide_shape(), lora)
    losses(through, 6)
    first, second = on_torch(wide_shape(), lora), on_torch(wide_shape(), lora)
    losses(first, 3)
    second.load_weights(first.weights())
    second.load_moments(first.moments(), 3)
    losses(second, 3)
    for name, values in through.weights().items():
        assert np.array_equal(values, second.weights()[name])


@needs_bitsandbytes
def test_logits_are_told_of_a_quantized_model():
    engine = on_torch(wide_shape(), "rank=4,quantize=8bit")
    in_bf16 = on_torch(wide_shape(), "rank=4,quantize=8bit", precision="bf16")
    whole = on_torch(wide_shape(), "rank=4")
    tokens = np.arange(1, 9)
    found = engine.logits(tokens, engine.weights())
    assert found == pytest.approx(whole.logits(tokens, whole.weights()), abs=0.02)
    assert found == pytest.approx(in_bf16.logits(tokens, engine.weights()), abs=1e-5)


@needs_bitsandbytes
@pytest.mark.parametrize("quantize", DISTANCE)
def test_the_plan_counts_what_quantized_weights_take(quantize: str):
    shape = wide_shape()
    engine = on_torch(shape, f"rank=4,quantize={quantize}")
    assert engine.adapter is not None
    model = inner_model(engine._model)
    held = [each for n, each in model.named_parameters() if "lora" not in n]
    held += [t for each in matrices(engine).values() for t in (each.packed, each.scales)]
    own = sum(each.nbytes for each in held)
    assert frozen_bytes(shape, engine.adapter, 4, "torch") == own
    assert dequantized_bytes(shape, engine.adapter, 4, "torch") == 4 * 64 * 128
    assert dequantized_bytes(shape, engine.adapter, 4, "mlx") == 0


def test_without_the_package_it_is_refused_with_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)
    with pytest.raises(MissingExtraError, match="lacks bitsandbytes") as caught:
        on_torch(wide_shape(), "rank=4,quantize=4bit")
    assert "pip install 'jupiterd[quantized]'" in (caught.value.hint or "")
    assert losses(on_torch(wide_shape(), "rank=4"), 1)


@needs_bitsandbytes
def test_ranks_share_gradients_beside_quantized_weights():
    ours = on_torch(wide_shape(), "rank=4,quantize=4bit")
    before = ours.nats(batch())
    ours.sum_gradients(batch())
    gradients = ours.take_gradients()
    assert set(gradients) == set(ours.weights())
    ours.put_gradients(gradients)
    ours.take_step(5e-3)
    assert ours.nats(batch()) < before


@needs_bitsandbytes
@pytest.mark.parametrize("quantize", DISTANCE)
def test_dora_and_dropout_learn_beside_them_as_beside_their_numbers(quantize: str):
    lora = "rank=4,dropout=0.1,dora"
    engine = on_torch(wide_shape(), f"{lora},quantize={quantize}")
    other = with_dequantized(engine, wide_shape(), lora)
    other.load_weights(engine.weights())
    for step in range(10):
        ours, theirs = (each.step(parts(step), 5e-3)[0] for each in (engine, other))
        assert ours == pytest.approx(theirs, abs=1e-5)
