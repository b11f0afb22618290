"""A model that is cut over the ranks of a ring learns what one machine learns, at every stage."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from transformers import AutoConfig

from jupiterd.cycle.training.plan import ModelShape, TrainPlan, shape_of_config
from jupiterd.workers.train.torch.process_group import ProcessGroup
from jupiterd.workers.train.torch.torch_engine import TorchEngine
from tests.support.workers.mlx_runs import ranks_run_to_end
from tests.support.workers.tiny_engine import tiny_plan
from tests.support.workers.tiny_run import SEQ_LEN, VOCAB, tiny_shape

pytest.importorskip("mlx.core")
pytestmark = [
    pytest.mark.mlx,
    pytest.mark.net,
    pytest.mark.timeout(240),
    pytest.mark.xdist_group("mlx"),
]

STEPS, HALF = 50, 25
TOLERANCE = 1e-4
STATE_TOLERANCE = 1e-5

Run = dict[str, Any]
Told = Mapping[str, NDArray[Any]]

SIZES: Mapping[str, Any] = {
    "vocab_size": VOCAB, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64,
    "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0, "head_dim": 8,
}  # fmt: skip
OWN_SIZES: Mapping[str, Mapping[str, Any]] = {
    "gpt2": {"n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 64},
    "gemma3_text": {
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        "sliding_window": 8,
    },
}


def shape_of(kind: str, *, tied: bool = True) -> ModelShape:
    fields = {**SIZES, **OWN_SIZES.get(kind, {}), "tie_word_embeddings": tied}
    config = AutoConfig.for_model(kind, **fields).to_dict()
    shape = shape_of_config(kind, config, tiny_shape().recipe)
    return shape.model_copy(update={"seq_len": SEQ_LEN})


def run(
    name: str,
    kind: str,
    stage: int = 0,
    parts: Sequence[int] = (),
    *,
    tied: bool = True,
    micro_batch: int = 2,
    **more: Any,
) -> Run:
    """Return a run; stage 0: nothing is cut."""
    shape = shape_of(kind, tied=tied)
    masks = {"document_masks": "on"} if more.get("documents") else {}
    plan: TrainPlan = tiny_plan(shape, micro_batch_sequences=micro_batch, **masks)
    cut = {"stage": stage, "parts": list(parts)} if stage else None
    given = {"shape": shape.to_plain(), "plan": plan.to_plain(), "partition": cut}
    return {"name": name, "steps": STEPS, **given, **more}


def told(folder: Path, name: str) -> Told:
    return load_file(folder / f"{name}.safetensors")


def assert_same_curve(found: Told, expected: Told) -> None:
    np.testing.assert_allclose(found["losses"], expected["losses"], atol=TOLERANCE)
    np.testing.assert_allclose(found["norms"], expected["norms"], rtol=1e-3)
    np.testing.assert_allclose(found["nats"], expected["nats"], rtol=1e-5)


def assert_same_state(found: Told, expected: Told) -> None:
    """Compare weights and moments.

    A step of AdamW is as long for a gradient of almost nothing as for any other, and of such a one
    rounding is all there is: one number in a thousand may differ by a tenth of a step.
    """
    tensors = [key for key in expected if key.startswith(("weight/", "moment/"))]
    assert tensors == [key for key in found if key.startswith(("weight/", "moment/"))]
    for key in tensors:
        assert found[key].shape == expected[key].shape
        differences = np.abs(found[key] - expected[key])
        assert np.quantile(differences, 0.999) < STATE_TOLERANCE, key
        assert differences.max() < 10 * STATE_TOLERANCE, key


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, fork_server: None) -> Path:
    """Return the folder of one machine that trained the small models."""
    folder = tmp_path_factory.mktemp("alone")
    runs = [
        run("qwen3", "qwen3"),
        run("qwen3 for a while", "qwen3", steps=8),
        run("qwen3, half", "qwen3", steps=HALF),
        run("qwen3, untied", "qwen3", tied=False),
        run("llama", "llama"),
        run("llama, untied", "llama", tied=False),
        run("gpt2", "gpt2"),
        run("gemma3_text", "gemma3_text"),
        run("apart", "qwen3", documents=True, counted=True, steps=8),
    ]
    ranks_run_to_end(1, runs, folder, "alone")
    return folder


def test_two_machines_learn_what_one_learns_at_each_stage(folder: Path):
    stages = {stage: run(f"two {stage}", "qwen3", stage, (24, 12), steps=8) for stage in (1, 2, 3)}
    ranks_run_to_end(2, list(stages.values()), folder, "two")
    expected = told(folder, "qwen3 for a while")
    for stage in stages:
        found = told(folder, f"two {stage}")
        assert_same_curve(found, expected)
        assert_same_state(found, expected)


CUTS: Mapping[int, Sequence[Sequence[int]]] = {
    2: ((1, 1), (5, 0)),
    3: ((1, 1, 1), (24, 12, 16)),
    4: ((1, 1, 1, 1), (24, 0, 12, 16)),
}
"""Ranks -> equal and uneven parts."""


@pytest.mark.full
@pytest.mark.parametrize("ranks", sorted(CUTS))
def test_fifty_steps_are_those_of_one_machine_however_it_is_cut(folder: Path, ranks: int):
    equal, uneven = CUTS[ranks]
    cuts = ((1, uneven), (2, uneven), (3, uneven), (3, equal))
    runs = [run(f"{ranks} ranks, {cut}", "qwen3", *cut) for cut in cuts]
    ranks_run_to_end(ranks, runs, folder, f"ring of {ranks}")
    for each in runs:
        assert_same_curve(told(folder, each["name"]), told(folder, "qwen3"))
        assert_same_state(told(folder, each["name"]), told(folder, "qwen3"))


MODELS = {
    "qwen3, untied": ("qwen3", False, (3,)),
    "llama": ("llama", True, (3,)),
    "llama, untied": ("llama", False, (2, 3)),
    "gpt2": ("gpt2", True, (1, 2, 3)),
    "gemma3_text": ("gemma3_text", True, (3,)),
}
"""Architecture, whether it is tied, and stages."""


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(MODELS))
def test_fifty_steps_are_those_of_one_machine_for_other_models(folder: Path, name: str):
    kind, tied, stages = MODELS[name]
    runs = [run(f"{name}, stage {n}", kind, n, (24, 12), tied=tied) for n in stages]
    ranks_run_to_end(2, runs, folder, name)
    for each in runs:
        found = told(folder, each["name"])
        assert_same_curve(found, told(folder, name))
        assert_same_state(found, told(folder, name))


@pytest.mark.full
def test_documents_are_kept_apart_and_targets_left_out_as_on_one_machine(folder: Path):
    runs = [
        run(f"apart {n}", "qwen3", n, (1, 2), documents=True, counted=True, steps=8)
        for n in (1, 2, 3)
    ]
    ranks_run_to_end(2, runs, folder, "apart, cut")
    for each in runs:
        assert_same_curve(told(folder, each["name"]), told(folder, "apart"))
        assert_same_state(told(folder, each["name"]), told(folder, "apart"))


@pytest.mark.full
def test_a_state_goes_on_with_another_stage_and_other_ranks(folder: Path):
    """Three ranks begin, two go on with a higher stage, and one that holds everything ends."""
    first = run("begun", "qwen3", 1, (24, 12, 16), steps=10)
    ranks_run_to_end(3, [first], folder, "begins")
    second = run("gone on", "qwen3", 3, (1, 2), **after("begun", folder, 10), steps=HALF - 10)
    ranks_run_to_end(2, [second], folder, "goes on")
    assert_same_state(told(folder, "gone on"), told(folder, "qwen3, half"))
    third = run("ended", "qwen3", **after("gone on", folder, HALF), steps=STEPS - HALF)
    ranks_run_to_end(1, [third], folder, "ends")
    assert_same_state(told(folder, "ended"), told(folder, "qwen3"))
    losses = [told(folder, name)["losses"] for name in ("begun", "gone on", "ended")]
    found = np.concatenate(losses)
    np.testing.assert_allclose(found, told(folder, "qwen3")["losses"], atol=TOLERANCE)


@pytest.mark.full
def test_what_torch_has_trained_goes_on_cut_over_a_ring(folder: Path):
    from tests.support.workers.ring_ranks import RATE, parts_of

    given = run("torch", "qwen3")
    shape, plan = ModelShape.from_plain(given["shape"]), TrainPlan.from_plain(given["plan"])
    torch = TorchEngine(shape, plan, 0, ProcessGroup(0, 1), "cpu")
    torch.begin(has_same_weights=True)
    for step in range(HALF):
        torch.step(parts_of(given, step, 0, 1), RATE)
    state: dict[str, Any] = {f"weight/{name}": values for name, values in torch.weights().items()}
    state |= {f"moment/{name}": values for name, values in torch.moments().items()}
    save_file(state, folder / "torch.safetensors")
    runs = [
        run(f"torch {n}", "qwen3", n, (3, 2), **after("torch", folder, HALF), steps=STEPS - HALF)
        for n in (1, 2, 3)
    ]
    ranks_run_to_end(2, runs, folder, "after torch")
    expected = [torch.step(parts_of(given, step, 0, 1), RATE)[0] for step in range(HALF, STEPS)]
    for each in runs:
        losses = told(folder, each["name"])["losses"]
        np.testing.assert_allclose(losses, expected, atol=TOLERANCE)


def after(name: str, folder: Path, step: int) -> Run:
    return {"state": str(folder / f"{name}.safetensors"), "first_step": step}
