"""Weights that were given: measured before the first step, and the best until a step is better."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from jupiterd.cycle.data.split import DEV
from jupiterd.cycle.training.horizon import Horizon
from jupiterd.cycle.training.plan import TrainPlan, derive
from jupiterd.protocol.frames import CheckpointWritten, Progressed
from jupiterd.workers.tokens.tokenizer import encode_batch, load_tokenizer
from jupiterd.workers.train.checkpoints.checkpoint import STATE_DIR
from jupiterd.workers.train.held_out.validation import Validation
from tests.support.workers.data_material import real, write
from tests.support.workers.mlx_runs import run_to_end
from tests.support.workers.tiny_engine import tiny_engine
from tests.support.workers.tiny_run import make_inputs, tiny_shape, train_params
from tests.unit.workers.test_train import checkpoints, train
from tests.unit.workers.train.held_out.test_held_out_monitor import STRANGE, loss_of
from tests.unit.workers.train.test_mlx_train import frames as frames_of
from tests.unit.workers.train.test_mlx_train import said

RUIN, GENTLE = 5.0, 1e-6


def held(folder: Path, texts: list[str], split: str = DEV) -> dict[str, str]:
    return {"holdout.0": str(write(folder, [replace(real(text), split=split) for text in texts]))}


@pytest.fixture
def given(tmp_path: Path) -> dict[str, str]:
    """A model that has learnt its text by heart, that text, and other text to score it by."""
    inputs = make_inputs(tmp_path)
    train(inputs, tmp_path / "before", plan=derive(tiny_shape(), 1, {"steps": 40}))
    weights = tmp_path / "before" / "checkpoint-00000040"
    return inputs | held(tmp_path / "held", STRANGE) | {"weights": str(weights)}


def tuning(rate: float, steps: int = 30) -> TrainPlan:
    plan = derive(tiny_shape(), 1, {"steps": steps, "learning_rate": rate})
    return plan.model_copy(update={"warmup_steps": 1, "checkpoint_every_steps": 10})


def tuned(inputs: dict[str, str], out: Path, plan: TrainPlan, **more: Any) -> CheckpointWritten:
    _, frames = train(inputs, out, plan=plan, is_tuning=True, **more)
    return checkpoints(frames)[-1]


@pytest.mark.parametrize("batch", [1, 3, 12])
def test_whatever_the_batch_they_begin_with_one_figure_on_one_text(
    batch: int, given: dict[str, str], tmp_path: Path
) -> None:
    own, other = (
        Horizon.of(tuned(given, tmp_path / f"of-{size}", plan).progress.horizon)
        for size in (6, batch)
        for plan in [tuning(GENTLE, 2).model_copy(update={"batch_sequences": size})]
    )
    assert other.first_loss == pytest.approx(own.first_loss, abs=1e-4)
    assert other.bytes_per_token == own.bytes_per_token


def test_they_are_measured_before_the_first_step(
    given: dict[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _, frames = train(given, tmp_path / "out", plan=tuning(GENTLE), is_tuning=True)
    horizon = Horizon.of(checkpoints(frames)[-1].progress.horizon)
    assert horizon.first_loss == pytest.approx(loss_of(Path(given["weights"]), given), abs=1e-5)
    bits = horizon.first_loss / horizon.bytes_per_token / math.log(2)
    first = next(frame for frame in frames if isinstance(frame, Progressed))
    assert first.done == 0
    assert first.values["bits_per_byte_before"] == pytest.approx(bits)
    lines = capfd.readouterr().out.splitlines()
    told = [n for n, line in enumerate(lines) if f"Held out: {bits:.4f} bits per byte" in line]
    step = next(n for n, line in enumerate(lines) if "| Step 1 |" in line)
    assert told[0] < step
    assert "before training" in lines[told[0]]


def test_the_bytes_of_a_token_are_those_of_the_text_that_is_scored(
    given: dict[str, str], tmp_path: Path
) -> None:
    tokenizer = Path(given["tokenizer"])
    texts = [*STRANGE[:3], "señor ¿qué? — 日本"]
    folders = [Path(held(tmp_path / "texts", texts)["holdout.0"])]
    validation, engine = Validation(folders, tokenizer, 512, 1, 2), tiny_engine()
    engine.nats = lambda micro_batches: float(bool(list(micro_batches)))
    validation.loss(engine, (6,))
    ids = encode_batch(load_tokenizer(tokenizer), texts)
    tokens = sum(len(document) + 1 for document in ids)
    size = sum(len(text.encode()) for text in texts)
    assert validation.bytes_per_token == pytest.approx(size / tokens)


def test_where_no_step_is_better_the_model_is_what_was_given_to_the_last_bit(
    given: dict[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    made = tuned(given, tmp_path / "out", tuning(RUIN))
    horizon = Horizon.of(made.progress.horizon)
    assert (made.progress.step, horizon.best_step, horizon.best_loss) == (30, 0, horizon.first_loss)
    assert horizon.ends_worse
    first, last = (
        load_file(folder / "model.safetensors")
        for folder in (Path(given["weights"]), tmp_path / "out" / made.path)
    )
    assert first.keys() == last.keys()
    assert all(torch.equal(first[name], last[name]) for name in first)
    log = capfd.readouterr().out.splitlines()
    assert "Ended worse than it began" in log[-3]
    assert "best as the weights were given" in log[-2]


@pytest.mark.full
def test_where_a_step_is_better_it_counts(given: dict[str, str], tmp_path: Path) -> None:
    train(given, tmp_path / "ruined", plan=tuning(RUIN))
    ruined = given | {"weights": str(tmp_path / "ruined" / "checkpoint-00000020")}
    horizon = Horizon.of(tuned(ruined, tmp_path / "out", tuning(1e-2)).progress.horizon)
    assert horizon.best_step > 0
    assert horizon.best_loss < horizon.first_loss
    assert not horizon.ends_worse


@pytest.mark.full
def test_whoever_goes_on_still_knows_them(given: dict[str, str], tmp_path: Path) -> None:
    plan = tuning(RUIN)
    _, frames = train(given, tmp_path / "whole", plan=plan, is_tuning=True)
    early, *_, last = checkpoints(frames)
    assert (tmp_path / "whole" / early.path / STATE_DIR / "best.safetensors").is_file()
    rest = {name: path for name, path in given.items() if name != "weights"}
    again = rest | {"checkpoint": str(tmp_path / "whole" / early.path)}
    ended = tuned(again, tmp_path / "again", plan, horizon=dict(early.progress.horizon))
    assert ended.progress.horizon == pytest.approx(dict(last.progress.horizon))
    one, other = (
        load_file(folder / "model.safetensors")
        for folder in (tmp_path / "whole" / last.path, tmp_path / "again" / ended.path)
    )
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_text_that_the_gate_judges_shows_the_loss_and_chooses_nothing(
    given: dict[str, str], tmp_path: Path
) -> None:
    inputs = given | held(tmp_path / "gate", STRANGE, split="gate")
    horizon = Horizon.of(tuned(inputs, tmp_path / "out", tuning(RUIN)).progress.horizon)
    assert horizon.first_loss > 0
    assert (horizon.best_step, horizon.best_loss) == (0, 0.0)
    assert not horizon.has_best


def test_drawn_weights_are_not_measured_before_they_have_learnt_anything(
    given: dict[str, str], tmp_path: Path
) -> None:
    _, frames = train(given, tmp_path / "out", plan=tuning(GENTLE))
    assert Horizon.of(checkpoints(frames)[-1].progress.horizon).first_loss == 0.0


@pytest.mark.full
@pytest.mark.mlx
@pytest.mark.xdist_group("mlx")
def test_mlx_measures_them_alike_and_gives_them_back_to_the_last_bit(
    given: dict[str, str], tmp_path: Path
) -> None:
    params = train_params(tiny_shape(), tuning(RUIN), is_tuning=True)
    run = {"name": "mlx", "params": params, "inputs": given, "folder": str(tmp_path)}
    run_to_end([run], tmp_path, "alone")
    told = said(tmp_path, "mlx")
    assert "error" not in told, told
    last = frames_of(told, "CheckpointWritten")[-1]
    horizon = Horizon.of(last["progress"]["horizon"])
    assert horizon.first_loss == pytest.approx(loss_of(Path(given["weights"]), given), abs=1e-4)
    assert (horizon.best_step, horizon.ends_worse) == (0, True)
    first, made = (
        load_file(folder / "model.safetensors")
        for folder in (Path(given["weights"]), tmp_path / "mlx" / last["path"])
    )
    assert all(torch.equal(first[name], made[name]) for name in first)
