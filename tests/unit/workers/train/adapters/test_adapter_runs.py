"""Runs that train an adapter: what they write down, and going on from it on either engine."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from jupiterd.cycle.training.adapters.adapter import AdapterOptions, parse_adapter
from jupiterd.cycle.training.plan import TrainPlan, derive
from jupiterd.errors import UsageError
from jupiterd.protocol.frames import CheckpointWritten
from tests.support.workers.mlx_runs import run_to_end
from tests.support.workers.tiny_run import make_inputs, tiny_shape, train_params
from tests.unit.workers.test_train import checkpoints, train
from tests.unit.workers.train.test_mlx_train import said

BASE = "b" * 64
WORDS = ("rank=4", "rank=4,dropout=0.1,dora")
ADAPTER = parse_adapter(WORDS[0]).model_copy(update={"base": BASE})


def plan_of(words: str) -> TrainPlan:
    return plan(parse_adapter(words).model_copy(update={"base": BASE}))


def plan(adapter: AdapterOptions | None = ADAPTER, steps: int = 6) -> TrainPlan:
    found = derive(tiny_shape(), 1, {"steps": steps})
    return found.model_copy(
        update={"options": found.options.model_copy(update={"adapter": adapter})}
    )


@pytest.fixture
def given(tmp_path: Path) -> dict[str, str]:
    """Shards, a tokenizer, and a whole model to put an adapter beside."""
    inputs = make_inputs(tmp_path)
    train(inputs, tmp_path / "before", plan=plan(None))
    return inputs | {"weights": str(tmp_path / "before" / "checkpoint-00000006")}


def trained(
    inputs: dict[str, str], out: Path, by: TrainPlan | None = None
) -> list[CheckpointWritten]:
    return checkpoints(train(inputs, out, plan=by or plan())[1])


def tensors(folder: Path) -> dict[str, np.ndarray]:
    state = load_file(folder / "training_state" / "optimizer.safetensors")
    return load_file(folder / "adapter_model.safetensors") | state


def test_a_checkpoint_is_a_folder_of_peft_and_holds_nothing_of_the_base(
    given: dict[str, str], tmp_path: Path
) -> None:
    last = trained(given, tmp_path / "out")[-1]
    folder = tmp_path / "out" / last.path
    said = json.loads((folder / "adapter_config.json").read_text())
    assert said["base_model_name_or_path"] == BASE
    assert (said["r"], said["lora_alpha"], said["peft_type"]) == (4, 8.0, "LORA")
    assert not (folder / "model.safetensors").exists()
    assert not (folder / "config.json").exists()
    assert (folder / "tokenizer.json").is_file()
    names = load_file(folder / "adapter_model.safetensors")
    assert "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight" in names
    assert all(".lora_A." in name or ".lora_B." in name for name in names)


@pytest.mark.parametrize("words", WORDS)
def test_a_run_goes_on_from_its_checkpoint_to_the_same_end(
    given: dict[str, str], tmp_path: Path, words: str
) -> None:
    by = plan_of(words)
    whole = tmp_path / "out" / trained(given, tmp_path / "out", by)[-1].path
    half = tmp_path / "out" / "checkpoint-00000003"
    again = trained(given | {"checkpoint": str(half)}, tmp_path / "again", by)[-1]
    found, wanted = tensors(tmp_path / "again" / again.path), tensors(whole)
    assert found.keys() == wanted.keys()
    assert all(np.array_equal(found[name], wanted[name]) for name in wanted)


@pytest.mark.mlx
@pytest.mark.xdist_group("mlx")
@pytest.mark.parametrize("words", WORDS)
def test_mlx_goes_on_from_what_torch_has_begun(
    given: dict[str, str], tmp_path: Path, words: str
) -> None:
    pytest.importorskip("mlx.core")
    by = plan_of(words)
    whole = tmp_path / "out" / trained(given, tmp_path / "out", by)[-1].path
    half = tmp_path / "out" / "checkpoint-00000003"
    params = train_params(tiny_shape(), by) | {"device": "cpu"}
    run_to_end(
        [{"name": "mlx", "params": params, "inputs": given | {"checkpoint": str(half)},
          "folder": str(tmp_path)}], tmp_path, "trainer",
    )  # fmt: skip
    frames = [f for f in said(tmp_path, "mlx")["frames"] if f["type"] == "CheckpointWritten"]
    found = next(tmp_path.rglob(f"mlx/**/{frames[-1]['path']}"))
    wanted = tensors(whole)
    for name, values in tensors(found).items():
        assert np.allclose(values, wanted[name], atol=1e-4), name


def test_what_has_dropout_is_trained_with_it_and_says_so(
    given: dict[str, str], tmp_path: Path
) -> None:
    with_it, without = (
        tmp_path / name / trained(given, tmp_path / name, plan_of(words))[-1].path
        for name, words in (("with", "rank=4,dropout=0.1"), ("without", "rank=4"))
    )
    said = json.loads((with_it / "adapter_config.json").read_text())
    assert (said["lora_dropout"], said["use_dora"]) == (0.1, False)
    ours, theirs = (
        load_file(folder / "adapter_model.safetensors") for folder in (with_it, without)
    )
    assert all(not np.array_equal(ours[name], theirs[name]) for name in ours)


def test_an_adapter_of_another_rank_is_refused(given: dict[str, str], tmp_path: Path) -> None:
    trained(given, tmp_path / "out")
    half = tmp_path / "out" / "checkpoint-00000003"
    other = plan(parse_adapter("rank=8").model_copy(update={"base": BASE}))
    with pytest.raises(UsageError, match="r is 4, not 8"):
        trained(given | {"checkpoint": str(half)}, tmp_path / "other", other)
