"""Checkpoints written beside the training: what was copied is what is written."""

import threading
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from jupiterd.workers.train.checkpoints import checkpoint, checkpoint_saver
from jupiterd.workers.train.checkpoints.checkpoint import TrainingSnapshot, TrainingState, snapshot
from jupiterd.workers.train.checkpoints.checkpoint_saver import CheckpointSaver
from tests.support.workers.tiny_engine import tiny_engine, train
from tests.support.workers.tiny_run import make_inputs

STATE = TrainingState(
    round=1, step=3, tokens=100, cursor=18, plan_hash="p", model_hash="m", rng="00"
)


def test_training_goes_on_while_the_copy_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    inputs, go = make_inputs(tmp_path), threading.Event()
    whole = checkpoint.write

    def slow(taken: TrainingSnapshot, folder: Path, tokenizer: Path) -> None:
        assert go.wait(10)
        whole(taken, folder, tokenizer)

    monkeypatch.setattr(checkpoint_saver, "write", slow)
    engine, said = tiny_engine(), list[str]()
    train(engine, Path(inputs["shards"]), steps=1)
    before = {name: values.copy() for name, values in engine.weights().items()}
    saver = CheckpointSaver(Path(inputs["tokenizer"]))
    saver.save(snapshot(engine, STATE), tmp_path / "one", lambda: said.append("written"))
    train(engine, Path(inputs["shards"]), steps=3)
    assert said == []
    go.set()
    saver.wait()
    assert said == ["written"]
    found = load_file(tmp_path / "one" / "model.safetensors")
    assert all(np.array_equal(found[name], values) for name, values in before.items())
    assert not np.array_equal(found["model.norm.weight"], engine.weights()["model.norm.weight"]), (
        "training did go on"
    )


def test_a_disk_that_is_full_is_told_once_and_leaves_no_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(_path: Path) -> None:
        raise OSError(28, "No space left on device")

    inputs, engine = make_inputs(tmp_path), tiny_engine()
    saver = CheckpointSaver(Path(inputs["tokenizer"]))
    monkeypatch.setattr(checkpoint, "_sync", full)
    saver.save(snapshot(engine, STATE), tmp_path / "one", pytest.fail)
    with pytest.raises(OSError, match="No space left"):
        saver.wait()
    saver.check()
    said = list[str]()
    saver.save(
        snapshot(engine, STATE), tmp_path / "one", pytest.fail, lambda: said.append("no room")
    )
    saver.wait()
    assert said == ["no room"]
    assert not list(tmp_path.glob("one*")), "a full disk needs the room of what wasn't finished"
    monkeypatch.undo()
    saver.save(snapshot(engine, STATE), tmp_path / "one", lambda: None)
    saver.wait()
    assert (tmp_path / "one").is_dir()
