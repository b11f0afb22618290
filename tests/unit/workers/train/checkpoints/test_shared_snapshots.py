"""Copies of a rank's state in shared memory: the bytes of its checkpoints, and as good a start.

What a killed process leaves there is proved by `tests/unit/processes/test_snapshot_memory`, and of
whole daemons by `tests/e2e/training/test_lone_rank`.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jupiterd.cycle.base.snapshot_pace import EVERY_STEPS, SnapshotPace
from jupiterd.cycle.training.adapters.adapter import parse_adapter
from jupiterd.cycle.training.engine_options import EngineOptions
from jupiterd.cycle.training.plan import TrainPlan, derive
from jupiterd.daemon.executor.state_snapshots import write_folder
from jupiterd.processes.environment import worker_environment
from jupiterd.processes.snapshot_memory import SnapshotMemory
from jupiterd.protocol.frames import Frame, Progressed
from jupiterd.workers import link
from jupiterd.workers.train.checkpoints import rank_snapshots
from jupiterd.workers.train.torch import torch_rank
from jupiterd.workers.train.torch.torch_engine import TorchEngine
from tests.support.workers.tiny_run import TaskAlone, make_inputs, tiny_shape, train_params

RUN = "order plan"
BEFORE_LAST = 5
"""The tiny round has six steps, and a checkpoint after the fifth."""


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[SnapshotMemory]:
    with SnapshotMemory(tmp_path) as opened:
        yield opened


@pytest.fixture
def after_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tiny steps, which take no time, be copied all the same."""
    monkeypatch.setattr(SnapshotPace, "every_steps", 1)
    monkeypatch.setattr(link, "PROGRESS_INTERVAL_S", -1.0)


def plan_with(**options: Any) -> TrainPlan:
    plan = derive(tiny_shape(), 1)
    return plan.model_copy(update={"options": EngineOptions(**options)})


def params(memory: SnapshotMemory, plan: TrainPlan | None = None) -> dict[str, Any]:
    given = {"descriptors": list(memory.descriptors), "run": RUN}
    return train_params(tiny_shape(), plan, snapshot=given)


def train(inputs: dict[str, str], output: Path, params: dict[str, Any]) -> list[Frame]:
    task = TaskAlone("train", params, inputs, output)
    torch_rank.run(task)
    return task.frames


def recovered(memory: SnapshotMemory, folder: Path, inputs: dict[str, str]) -> Path:
    """Return the folder that a daemon makes of the last snapshot."""
    found = memory.newest(RUN)
    assert found is not None
    written = write_folder(found, folder, Path(inputs["tokenizer"]))
    assert written.progress.step == BEFORE_LAST
    return folder / written.path


def files(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


@pytest.mark.parametrize(
    "options", [{}, {"optimizer": "muon"}, {"weights": "bf16", "precision": "bf16"}]
)
@pytest.mark.usefixtures("after_each_step")
def test_the_folder_of_a_snapshot_is_that_of_a_checkpoint_of_its_step(
    tmp_path: Path, memory: SnapshotMemory, options: dict[str, Any]
) -> None:
    inputs = make_inputs(tmp_path)
    train(inputs, tmp_path / "out", params(memory, plan_with(**options)))
    kept = files(recovered(memory, tmp_path / "out", inputs))
    checkpoint = files(tmp_path / "out" / f"checkpoint-{BEFORE_LAST:08}")
    assert kept.keys() == checkpoint.keys()
    assert [name for name in kept if kept[name] != checkpoint[name]] == []


@pytest.mark.usefixtures("after_each_step")
def test_so_is_that_of_an_adapter(tmp_path: Path, memory: SnapshotMemory) -> None:
    inputs = make_inputs(tmp_path)
    train(inputs, tmp_path / "base", train_params(tiny_shape()))
    inputs["weights"] = str(tmp_path / "base" / "checkpoint-00000006")
    adapting = plan_with(adapter=parse_adapter("rank=2"))
    train(inputs, tmp_path / "out", params(memory, adapting))
    kept = files(recovered(memory, tmp_path / "out", inputs))
    assert kept == files(tmp_path / "out" / f"checkpoint-{BEFORE_LAST:08}")
    assert "adapter_model.safetensors" in kept


@pytest.mark.usefixtures("after_each_step")
def test_a_run_that_goes_on_from_a_snapshot_is_bit_identical_to_an_uninterrupted_one(
    tmp_path: Path, memory: SnapshotMemory
) -> None:
    inputs = make_inputs(tmp_path)
    train(inputs, tmp_path / "whole", params(memory))
    start = recovered(memory, tmp_path / "whole", inputs)
    train(inputs | {"checkpoint": str(start)}, tmp_path / "resumed", train_params(tiny_shape()))
    whole, resumed = (files(tmp_path / n / "checkpoint-00000006") for n in ("whole", "resumed"))
    assert whole == resumed


@pytest.mark.usefixtures("after_each_step")
def test_a_copy_beside_the_next_gradients_is_of_one_step(
    tmp_path: Path, memory: SnapshotMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a GPU: another thread copies, and no update begins before it is done."""
    inputs = make_inputs(tmp_path)
    monkeypatch.setattr(TorchEngine, "copies_beside", True)
    frames = train(inputs, tmp_path / "out", params(memory))
    kept = files(recovered(memory, tmp_path / "out", inputs))
    assert kept == files(tmp_path / "out" / f"checkpoint-{BEFORE_LAST:08}")
    told = [f.values.get(EVERY_STEPS) for f in frames if isinstance(f, Progressed)]
    assert told[1:] == [1.0] * 5


@pytest.mark.usefixtures("after_each_step")
def test_without_room_nothing_is_copied_and_that_is_told(
    tmp_path: Path,
    memory: SnapshotMemory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(rank_snapshots.memory_limits, "free_memory_bytes", lambda: 1 << 16)
    frames = train(make_inputs(tmp_path), tmp_path / "out", params(memory))
    assert memory.newest(RUN) is None
    told = [f.values.get(EVERY_STEPS) for f in frames if isinstance(f, Progressed)]
    assert told == [None, *[0.0] * 5]
    assert "too little memory is free" in capsys.readouterr().out


@pytest.mark.usefixtures("after_each_step")
@pytest.mark.parametrize("beside", [False, True])
def test_a_copy_that_fails_ends_the_copies_and_not_the_training(
    tmp_path: Path,
    memory: SnapshotMemory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    beside: bool,
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("CUDA out of memory")

    monkeypatch.setattr(TorchEngine, "copies_beside", beside)
    monkeypatch.setattr(TorchEngine, "copy_state", fail)
    train(make_inputs(tmp_path), tmp_path / "out", params(memory))
    assert (tmp_path / "out" / "checkpoint-00000006").is_dir()
    assert memory.newest(RUN) is None
    assert "since one failed: CUDA out of memory" in capsys.readouterr().out


@pytest.mark.usefixtures("after_each_step")
def test_files_in_place_of_memory_aren_t_filled_on_a_disk_without_room(
    tmp_path: Path, memory: SnapshotMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on macOS, where writing beyond the disk's end through a map would kill the rank."""
    inputs, free_blocks = make_inputs(tmp_path), [1]

    def disk(_descriptor: int) -> os.statvfs_result:
        (free,) = free_blocks
        return os.statvfs_result((4096, 4096, 1 << 40, free, free, 0, 0, 0, 0, 255))

    monkeypatch.delattr(os, "posix_fallocate")
    monkeypatch.setattr(os, "fstatvfs", disk)
    train(inputs, tmp_path / "full", params(memory))
    assert memory.newest(RUN) is None
    free_blocks[0] = 1 << 30
    train(inputs, tmp_path / "room", params(memory))
    assert memory.newest(RUN) is not None


def test_a_rank_that_was_given_no_memory_says_nothing_of_copies(tmp_path: Path) -> None:
    frames = train(make_inputs(tmp_path), tmp_path / "out", train_params(tiny_shape()))
    steps = [frame for frame in frames if isinstance(frame, Progressed)]
    assert steps
    assert all(EVERY_STEPS not in frame.values for frame in steps)


@pytest.mark.mlx
def test_mlx_leaves_the_same_folder_as_its_checkpoint(
    tmp_path: Path, memory: SnapshotMemory
) -> None:
    pytest.importorskip("mlx")
    inputs = make_inputs(tmp_path)
    run = {"name": "out", "params": params(memory), "inputs": inputs, "folder": str(tmp_path)}
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps([run]))
    script = (
        "import runpy; from jupiterd.cycle.base.snapshot_pace import SnapshotPace;"
        "SnapshotPace.every_steps = 1;"
        "runpy.run_module('tests.support.workers.mlx_run', run_name='__main__')"
    )
    subprocess.run(
        [sys.executable, "-c", script, str(spec)],
        env=os.environ | worker_environment("train_mlx", {"engine": "mlx", "threads": 1}),
        cwd=Path(__file__).resolve().parents[5],
        pass_fds=memory.descriptors,
        check=True,
        timeout=100,
    )
    kept = files(recovered(memory, tmp_path / "out", inputs))
    assert kept == files(tmp_path / "out" / f"checkpoint-{BEFORE_LAST:08}")
