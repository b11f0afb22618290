"""Adapters beside models that mlx-lm has quantized: as they are packed, and as they are read."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jupiterd.adapter_folder import ADAPTER_CONFIG, join
from jupiterd.cycle.training.adapters.adapter import parse_adapter
from jupiterd.cycle.training.adapters.adapter_size import frozen_bytes
from jupiterd.cycle.training.plan import ModelShape, shape_of_config
from jupiterd.errors import UsageError
from jupiterd.workers.adapters.write_merged import write_merged
from jupiterd.workers.mlx_folder import loaded_model
from jupiterd.workers.packed_tensors import packed_of
from jupiterd.workers.train.architectures.folder_weights import read_folder
from jupiterd.workers.train.architectures.skeleton import skeleton
from jupiterd.workers.train.checkpoints.checkpoint import load_base
from jupiterd.workers.train.model_config import model_config
from tests.support.workers.tiny_engine import tiny_plan
from tests.support.workers.tiny_models import write_model
from tests.support.workers.tiny_run import tiny_shape
from tests.unit.workers.train.adapters.test_adapter_engines import losses
from tests.unit.workers.train.adapters.test_merged_adapters import adapter_to
from tests.unit.workers.train.adapters.test_quantized_base import parameters_of

mx = pytest.importorskip("mlx.core")
pytestmark = pytest.mark.mlx

SIZES = {"hidden_size": 64, "intermediate_size": 128, "head_dim": 32, "num_attention_heads": 2}


@pytest.fixture(params=[4, 8])
def quantized(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A model as `mlx_lm.convert -q` writes it."""
    return written(tmp_path, request.param)


def written(folder: Path, bits: int, group: int = 64) -> Path:
    from mlx_lm.convert import convert

    whole = write_model(folder / "whole", "llama", **SIZES)
    there = folder / f"quantized-{bits}-{group}"
    convert(str(whole), str(there), quantize=True, q_bits=bits, q_group_size=group)
    return there


def shape_in(folder: Path) -> ModelShape:
    config = json.loads((folder / "config.json").read_text())
    found = shape_of_config("given", config, tiny_shape().recipe)
    return found.model_copy(update={"seq_len": tiny_shape().seq_len})


def engine_beside(folder: Path, lora: str = "rank=4", **options: str) -> Any:
    from jupiterd.workers.train.mlx.mlx_engine import MlxTrainingEngine
    from jupiterd.workers.train.mlx.ring import Ring

    shape = shape_in(folder)
    plan = tiny_plan(shape, adapter=parse_adapter(lora), **options)
    engine = MlxTrainingEngine(shape, plan, 0, Ring(0, 1))
    load_base(folder, engine)
    engine.begin(has_same_weights=True)
    return engine


def numbers_of(folder: Path) -> Mapping[str, Any]:
    config = model_config(shape_in(folder))
    return read_folder(folder, config, skeleton(config).shapes)


def test_packed_numbers_are_read_as_mlx_reads_them(quantized: Path):
    raw, bits = mx.load(str(quantized / "model.safetensors")), int(quantized.name.split("-")[1])
    found = numbers_of(quantized)
    assert set(found) == set(skeleton(model_config(shape_in(quantized))).shapes)
    for path in ("model.embed_tokens", "model.layers.1.mlp.down_proj"):
        parts = [raw[f"{path}.{each}"] for each in ("weight", "scales", "biases")]
        exact = [parts[0], *(each.astype(mx.float32) for each in parts[1:])]
        wanted = np.array(mx.dequantize(*exact, group_size=64, bits=bits))
        assert np.allclose(found[f"{path}.weight"], wanted, atol=1e-6)
        packed = packed_of(found, f"{path}.weight")
        assert packed is not None
        assert np.array_equal(packed.words, np.array(parts[0]))
    assert packed_of(found, "model.norm.weight") is None


def test_an_adapter_is_trained_beside_the_very_bits_of_the_folder(quantized: Path):
    engine = engine_beside(quantized)
    raw, held = mx.load(str(quantized / "model.safetensors")), parameters_of(engine)
    path = "model.layers.0.self_attn.q_proj"
    assert np.array_equal(np.array(held[f"{path}.linear.weight"]), np.array(raw[f"{path}.weight"]))
    assert engine.base_digest() == engine_beside(quantized, precision="bf16").base_digest() != ""
    found = losses(engine)
    assert found[-1] < found[0] - 0.1


def test_the_plan_counts_them_as_they_come(quantized: Path):
    engine, shape = engine_beside(quantized), shape_in(quantized)
    own = sum(v.nbytes for n, v in parameters_of(engine).items() if "lora" not in n)
    assert frozen_bytes(shape, parse_adapter("rank=4"), 4, "mlx") == pytest.approx(own, rel=0.005)


def test_no_whole_model_is_written_of_it(quantized: Path, tmp_path: Path):
    adapter = adapter_to(tmp_path / "whole", tmp_path / "adapter")
    joined = join(adapter, quantized, tmp_path / "spool" / "model")
    with pytest.raises(UsageError, match="the base is quantized for MLX"):
        write_merged(joined, tmp_path / "out")


def test_groups_may_have_another_size(tmp_path: Path):
    folder = written(tmp_path, 4, 32)
    assert losses(engine_beside(folder), 4)[-1] < 10
    assert frozen_bytes(shape_in(folder), parse_adapter("rank=4"), 4, "mlx") > 0


def test_who_writes_with_mlx_has_the_sum_of_both(quantized: Path, tmp_path: Path):
    from safetensors.numpy import save_file

    engine = engine_beside(quantized)
    losses(engine, 6)
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    save_file(dict(engine.weights()), adapter / "adapter_model.safetensors")
    said = {"peft_type": "LORA", "r": 4, "lora_alpha": 8, "target_modules": ["q_proj"]}
    (adapter / ADAPTER_CONFIG).write_text(json.dumps(said))
    for name in ("config.json", "tokenizer.json"):
        if (quantized / name).is_file():
            (adapter / name).write_bytes((quantized / name).read_bytes())
    (adapter / "base").symlink_to(quantized)
    tokens = np.arange(1, 9)
    found = np.array(loaded_model(adapter)(mx.array(tokens)[None])[0, -1].astype(mx.float32))
    assert found == pytest.approx(engine.logits(tokens, engine.weights()), abs=0.05)
