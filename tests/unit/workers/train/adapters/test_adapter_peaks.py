"""What engines keep for an adapter's backward pass, beside what is planned."""

# pyright: reportPrivateUsage=false

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from jupiterd.cycle.training.activations.adapter_activations import Widths, adapted_layers
from jupiterd.cycle.training.adapters.adapter import parse_adapter
from jupiterd.cycle.training.engine_options import DeviceAbilities
from jupiterd.cycle.training.memory import memory_need
from jupiterd.cycle.training.plan import ModelShape
from jupiterd.workers.train.dropout_mask import token_keys
from jupiterd.workers.train.torch.torch_engine import TorchEngine
from jupiterd.workers.training_engine import MicroBatch
from tests.support.workers.tiny_engine import tiny_plan
from tests.support.workers.tiny_run import tiny_shape
from tests.unit.workers.train.adapters.test_adapter_engines import on_mlx, on_torch
from tests.unit.workers.train.architectures import test_mlx_models
from tests.unit.workers.train.architectures.test_mlx_models import batch

TARGETS = ("all", "mlp", "attention", "down_proj", "q_proj+v_proj")
SIZES = {"hidden_size": 128, "intermediate_size": 384, "num_attention_heads": 4}


OF_GPT2 = {
    "hidden_size": 128, "n_inner": 512, "intermediate_size": 512, "num_attention_heads": 4,
    "resid_pdrop": 0.0, "attn_pdrop": 0.0, "embd_pdrop": 0.0,
}  # fmt: skip


def shape_of(kind: str, layers: int, **changes: Any) -> ModelShape:
    if kind == "qwen3":
        return tiny_shape(layers=layers, hidden=128, ff=384, heads=2, kv_heads=1, head_dim=64)
    if kind == "gpt2":
        return test_mlx_models.shape_of(kind, **OF_GPT2, num_hidden_layers=layers)
    return test_mlx_models.shape_of(kind, **SIZES, num_hidden_layers=layers, **changes)


def kept_bytes(engine: TorchEngine) -> int:
    """Return what the forward pass keeps beside parameters, each piece of memory once."""
    found: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        found[storage.data_ptr()] = storage.nbytes()
        return tensor

    own = {
        each.untyped_storage().data_ptr()
        for each in (*engine._model.parameters(), *engine._model.buffers())
    }
    (given,) = batch()
    given = given._replace(token_keys=token_keys("s", np.arange(6), given.inputs.shape[1]))
    draws = engine._keys.of(engine._keys_of(given))
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor), draws:
        loss = engine._loss(*engine._tensors(given))
    assert loss.requires_grad
    return sum(size for place, size in found.items() if place not in own)


@pytest.mark.parametrize("more", ["", ",dropout=0.1", ",dora", ",dropout=0.1,dora"])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", ["qwen3", "llama", "gpt2"])
def test_torch_keeps_of_each_layer_what_is_planned(kind: str, target: str, more: str):
    if kind == "gpt2" and "_proj" in target:
        target = "c_attn" if "q_proj" in target else "c_proj"
    lora = f"rank=4,targets={target}{more}"
    few, many = (kept_bytes(on_torch(shape_of(kind, layers), lora)) for layers in (2, 4))
    shape, (of,) = shape_of(kind, 4), batch()
    planned = adapted_layers(shape, parse_adapter(lora), Widths(4, 4, is_mlx=False)).each
    # GPT-2 copies what attention found before its last matrix.
    share = 0.11 if kind == "gpt2" else 0.04
    assert (many - few) / 2 / of.inputs.size == pytest.approx(planned, rel=share)


def test_torch_keeps_nothing_below_the_first_adapter():
    lora = "rank=4,layers=2"
    few, many = (kept_bytes(on_torch(shape_of("llama", layers), lora)) for layers in (3, 6))
    assert few == many


@pytest.mark.mlx
@pytest.mark.parametrize(
    "lora",
    ["rank=4", "rank=4,targets=q_proj+v_proj", "rank=4,layers=3", "rank=4,dropout=0.1",
     "rank=4,dora", "rank=4,dropout=0.1,layers=3,dora"],
)  # fmt: skip
def test_mlx_takes_as_much_as_is_planned(lora: str):
    mx = pytest.importorskip("mlx.core")
    shape = shape_of("llama", 8, vocab_size=2_048).model_copy(update={"seq_len": 256})
    engine = on_mlx(shape, lora, gradient_checkpointing="off")
    mx.set_memory_limit(1 << 40)  # it waits for nothing, as on a machine with room
    mx.clear_cache()
    before = mx.get_active_memory()
    mx.reset_peak_memory()
    ids = np.random.default_rng(3).integers(1, 300, (2, shape.seq_len + 1))
    keys = token_keys("s", np.arange(2), shape.seq_len)
    engine.try_pass(MicroBatch(ids[:, :-1], ids[:, 1:], token_keys=keys))
    plan = tiny_plan(shape, adapter=parse_adapter(lora)).model_copy(
        update={"micro_batch_sequences": 2}
    )
    need = memory_need(
        shape, plan, "fp32", gradient_checkpointing=False, device=DeviceAbilities("mlx", "cpu", 0)
    )
    taken = mx.get_peak_memory() - before
    assert taken == pytest.approx(need.gradients + need.activations + need.logits, rel=0.1)
