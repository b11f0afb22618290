"""Training that follows the loss on development text: it ends by it, and keeps the best weights."""

import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from jupiterd.cycle.data.split import DEV
from jupiterd.cycle.training.horizon import Horizon, end_step
from jupiterd.cycle.training.plan import TrainPlan, derive
from jupiterd.protocol.frames import CheckpointWritten
from jupiterd.workers.train.checkpoints import best_weights
from jupiterd.workers.train.checkpoints.best_weights import BestWeights
from jupiterd.workers.train.checkpoints.checkpoint import STATE_DIR, load_state, load_weights
from jupiterd.workers.train.held_out.validation import Validation
from jupiterd.workers.train.report.metrics import JSONL_FILE
from tests.support.workers.data_material import real, write
from tests.support.workers.mlx_runs import run_to_end
from tests.support.workers.tiny_engine import tiny_engine
from tests.support.workers.tiny_run import SEQ_LEN, make_inputs, tiny_shape, train_params
from tests.unit.workers.test_train import checkpoints, tensors, train
from tests.unit.workers.train.test_mlx_train import frames as frames_of
from tests.unit.workers.train.test_mlx_train import said

STRANGE = [f"def value_{n}(a, b):\n    return a * {n} + b\n" for n in range(20)]
"""Nothing of what is trained on helps with it: its loss rises."""


@pytest.fixture
def inputs(tmp_path: Path) -> dict[str, str]:
    held = write(tmp_path / "held", [replace(real(text), split=DEV) for text in STRANGE])
    return make_inputs(tmp_path) | {"holdout.0": str(held)}


def growing(**changes: Any) -> TrainPlan:
    """Return a plan of 84 steps that may grow to 140; one is measured every 14."""
    plan = derive(tiny_shape(), 1, {"steps": 140})
    grows = {"least_steps": 84, "extends_by_steps": 14, "checkpoint_every_steps": 14}
    return plan.model_copy(update=grows | changes)


def loss_of(weights: Path, inputs: dict[str, str]) -> float:
    """Return the loss of a checkpoint on the development text, measured by itself."""
    engine = tiny_engine()
    load_weights(weights, engine)
    held_out, tokenizer = [Path(inputs["holdout.0"])], Path(inputs["tokenizer"])
    loss = Validation(held_out, tokenizer, SEQ_LEN, 5, 2).loss(engine, (6,))
    assert loss is not None
    return loss


def test_where_the_loss_rises_for_good_training_ends_and_the_best_weights_are_its_own(
    inputs: dict[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    plan = growing(steps=420, decay_steps=84, least_steps=280)
    finished, frames = train(inputs, tmp_path / "out", plan=plan)
    last = checkpoints(frames)[-1]
    horizon = Horizon.of(last.progress.horizon)
    assert 0 < horizon.best_step < horizon.decay_from < horizon.ended < plan.least_steps
    assert last.progress.step == finished.summary["step"] == end_step(plan, horizon)
    assert not finished.summary["stopped"]
    made = tmp_path / "out" / last.path
    assert loss_of(made, inputs) == pytest.approx(horizon.best_loss, abs=1e-5)
    assert not load_state(made).on_trunk, "its moments are those of another step"
    log = capfd.readouterr().out
    assert "The held-out loss has risen for good: training ends early" in log
    assert f"best at step {horizon.best_step}" in log.splitlines()[-2]


@pytest.mark.full
@pytest.mark.mlx
@pytest.mark.xdist_group("mlx")
def test_mlx_ends_by_it_too_and_its_best_weights_score_the_same_on_torch(
    inputs: dict[str, str], tmp_path: Path
):
    plan = growing(steps=420, decay_steps=84, least_steps=280)
    params = train_params(tiny_shape(), plan)
    run = {"name": "mlx", "params": params, "inputs": inputs, "folder": str(tmp_path)}
    run_to_end([run], tmp_path, "alone")
    told = said(tmp_path, "mlx")
    assert "error" not in told, told
    last = frames_of(told, "CheckpointWritten")[-1]
    progress = last["progress"]
    horizon = Horizon.of(progress["horizon"])
    assert 0 < horizon.best_step < progress["step"] == end_step(plan, horizon) < plan.steps
    made = tmp_path / "mlx" / last["path"]
    assert loss_of(made, inputs) == pytest.approx(horizon.best_loss, abs=1e-4)


@pytest.mark.full
def test_steps_that_were_asked_for_are_taken_and_the_best_weights_count(
    inputs: dict[str, str], tmp_path: Path
):
    plan = derive(tiny_shape(), 1, {"steps": 80})
    _, frames = train(inputs, tmp_path / "out", plan=plan)
    last = checkpoints(frames)[-1]
    horizon = Horizon.of(last.progress.horizon)
    assert (last.progress.step, horizon.ended) == (80, 0)
    assert loss_of(tmp_path / "out" / last.path, inputs) == pytest.approx(horizon.best_loss, 1e-5)


def test_without_development_text_four_passes_are_taken(tmp_path: Path):
    plan = growing()
    _, frames = train(make_inputs(tmp_path), tmp_path / "out", plan=plan)
    last = checkpoints(frames)[-1]
    assert last.progress.step == plan.least_steps
    assert Horizon.of(last.progress.horizon).best_step == 0


def test_by_the_gates_text_nothing_is_decided(inputs: dict[str, str], tmp_path: Path):
    held = write(tmp_path / "gate", map(real, STRANGE))
    plan = growing()
    gate = inputs | {"holdout.0": str(held)}
    _, frames = train(gate, tmp_path / "out", plan=plan, log_dir=str(tmp_path / "curves"))
    last = checkpoints(frames)[-1]
    assert last.progress.step == plan.least_steps
    assert Horizon.of(last.progress.horizon).best_step == 0
    assert "val_loss" in (tmp_path / "curves" / JSONL_FILE).read_text(), "people see it"


@pytest.mark.full
def test_whoever_goes_on_decides_the_same_and_ends_with_the_same_weights(
    inputs: dict[str, str], tmp_path: Path
):
    plan = growing()
    _, frames = train(inputs, tmp_path / "whole", plan=plan)
    *before, whole = checkpoints(frames)
    assert before
    for made in before:
        assert _went_on(made, plan, inputs, tmp_path) == whole.progress.horizon
        first, second = (
            tensors(tmp_path / folder / whole.path)
            for folder in ("whole", f"from-{made.progress.step}")
        )
        assert all(torch.equal(first[name], second[name]) for name in first)


def _went_on(
    made: CheckpointWritten, plan: TrainPlan, inputs: dict[str, str], tmp_path: Path
) -> Any:
    start = inputs | {"checkpoint": str(tmp_path / "whole" / made.path)}
    out = tmp_path / f"from-{made.progress.step}"
    _, frames = train(start, out, plan=plan, horizon=dict(made.progress.horizon))
    return checkpoints(frames)[-1].progress.horizon


@pytest.mark.full
def test_what_its_writer_had_not_come_to_measure_is_measured_by_whoever_goes_on(
    inputs: dict[str, str], tmp_path: Path
):
    """A survivor may keep its state between a step and the measurement that follows it."""
    plan = growing()
    _, frames = train(inputs, tmp_path / "whole", plan=plan)
    first, second, *_, whole = checkpoints(frames)
    assert first.progress.step < second.progress.step
    progress = replace(second.progress, horizon=first.progress.horizon)
    early = replace(second, progress=progress)
    assert _went_on(early, plan, inputs, tmp_path) == pytest.approx(
        whole.progress.horizon, abs=1e-5
    )


def test_a_checkpoint_holds_the_best_weights_beside_its_own_where_they_are_others(
    inputs: dict[str, str], tmp_path: Path
):
    _, frames = train(inputs, tmp_path / "out", plan=growing())
    *on_the_way, last = checkpoints(frames)
    for made in on_the_way:
        has_best = (tmp_path / "out" / made.path / STATE_DIR / "best.safetensors").is_file()
        assert has_best == (made.progress.horizon["best_step"] != made.progress.step)
    assert last.progress.horizon["best_step"] != last.progress.step, "one of them holds others"


def test_the_best_weights_outlive_the_checkpoint_that_they_came_from(tmp_path: Path):
    engine, checkpoint = tiny_engine(), tmp_path / "checkpoint"
    checkpoint.mkdir()
    first = BestWeights(tmp_path / "first", writes=True)
    first.take(3, engine)
    file = first.file(3, 9)
    assert file is not None
    file.rename(checkpoint / "model.safetensors")
    second = BestWeights(tmp_path / "second", writes=True)
    second.go_on(3, 3, checkpoint)
    (checkpoint / "model.safetensors").unlink()
    assert second.file(3, 3) is None
    found = second.file(3, 4)
    assert found is not None
    name, values = next(iter(engine.weights().items()))
    assert np.array_equal(load_file(found)[name].numpy(), values)


def test_one_process_of_each_machine_writes_them(tmp_path: Path):
    other = BestWeights(tmp_path / "other", writes=False)
    other.take(3, tiny_engine())
    assert other.lacks(3, 4)
    assert not other.lacks(3, 3)
    assert not other.lacks(None, 4)
    assert not (tmp_path / "other").exists()


def test_without_room_for_them_training_goes_on_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(best_weights, "save_each", full)
    best = BestWeights(tmp_path / "best", writes=True)
    best.take(3, tiny_engine())
    assert best.lacks(3, 4)
    assert best.file(3, 4) is None
    assert "no room for the best weights, of step 3" in capfd.readouterr().out
