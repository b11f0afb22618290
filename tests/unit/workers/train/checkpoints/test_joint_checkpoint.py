"""A checkpoint of a model that is cut over ranks is the one that a single rank would write."""

import errno
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from jupiterd.cycle.training.plan import derive
from jupiterd.workers import tensor_writer
from jupiterd.workers.tensor_file import load_tensors
from jupiterd.workers.train.checkpoints import checkpoint
from jupiterd.workers.train.checkpoints.checkpoint import TrainingState
from jupiterd.workers.train.checkpoints.joint_checkpoint import JointCheckpoint
from jupiterd.workers.train.torch.process_group import ProcessGroup
from jupiterd.workers.train.torch.torch_engine import TorchEngine
from jupiterd.workers.training_engine import MicroBatch, NamedTensor
from tests.support.workers.tiny_run import make_inputs, tiny_shape

STATE = TrainingState(
    round=2, step=3, tokens=100, cursor=18, plan_hash="p", model_hash="m", rng="00"
)


class CountingEngine(TorchEngine):
    """Notes what was gone through."""

    yielded = 0

    def each_weight(self) -> Iterator[NamedTensor]:
        for each in super().each_weight():
            self.yielded += 1
            yield each

    def each_moment(self) -> Iterator[NamedTensor]:
        for each in super().each_moment():
            self.yielded += 1
            yield each


@pytest.fixture
def engine() -> CountingEngine:
    shape = tiny_shape()
    found = CountingEngine(shape, derive(shape, 1), 0, ProcessGroup(0, 1), "cpu")
    found.begin(has_same_weights=True)
    tokens = np.arange(34).reshape(2, 17)
    found.step([MicroBatch(tokens[:, :-1], tokens[:, 1:])], 1e-3)
    return found


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    return Path(make_inputs(tmp_path)["tokenizer"])


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def all_tensors(engine: CountingEngine) -> int:
    return len(engine.weights()) + len(engine.moments())


def test_its_files_are_those_of_a_rank_that_holds_all(
    engine: CountingEngine, tokenizer: Path, tmp_path: Path
) -> None:
    checkpoint.write(checkpoint.snapshot(engine, STATE), tmp_path / "alone", tokenizer)
    JointCheckpoint(engine, tokenizer).write(STATE, tmp_path / "joint", None, is_last=False)
    assert contents(tmp_path / "joint") == contents(tmp_path / "alone")


def test_a_rank_that_writes_nothing_goes_through_all_the_same(
    engine: CountingEngine, tokenizer: Path, tmp_path: Path
) -> None:
    before = {*tmp_path.iterdir()}
    JointCheckpoint(engine, tokenizer).write(STATE, None, None, is_last=False)
    assert engine.yielded == all_tensors(engine)
    assert {*tmp_path.iterdir()} == before


def test_a_full_disk_keeps_no_other_rank_waiting_and_leaves_nothing(
    engine: CountingEngine, tokenizer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tensor_writer._GrowingFile, "_written", full)
    with pytest.raises(OSError, match="No space left"):
        JointCheckpoint(engine, tokenizer).write(STATE, tmp_path / "joint", None, is_last=False)
    assert engine.yielded == all_tensors(engine)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("joint")]


def test_better_weights_stand_beside_those_of_a_step_and_in_the_place_of_the_last(
    engine: CountingEngine, tokenizer: Path, tmp_path: Path
) -> None:
    best = tmp_path / "best.safetensors"
    tensor_writer.save_each(
        ((name, values + 1) for name, values in engine.each_weight()), engine.shapes, best
    )
    joint = JointCheckpoint(engine, tokenizer)
    joint.write(STATE, tmp_path / "between", best, is_last=False)
    joint.write(STATE, tmp_path / "last", best, is_last=True)
    beside = tmp_path / "between" / "training_state" / "best.safetensors"
    assert beside.read_bytes() == best.read_bytes()
    name = "model.norm.weight"
    between, last = (
        load_tensors(tmp_path / folder / "model.safetensors")[name]
        for folder in ("between", "last")
    )
    np.testing.assert_allclose(last, between + 1)
