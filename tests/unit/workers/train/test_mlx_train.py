"""Training on MLX: as torch does it, alone and in a ring, each engine going on from the other."""

import contextlib
import json
import stat
import sys
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from jupiterd.cycle.training.architectures import parameter_count
from jupiterd.cycle.training.plan import ModelShape, TrainPlan, derive
from jupiterd.workers.train.batches import RankBatches
from jupiterd.workers.train.checkpoints.checkpoint import load_weights
from jupiterd.workers.train.job import read_job
from jupiterd.workers.train.loop import StepDone, TrainingLoop
from jupiterd.workers.train.torch import torch_rank
from jupiterd.workers.train.torch.process_group import ProcessGroup
from jupiterd.workers.train.torch.torch_engine import TorchEngine
from tests.support.workers.mlx_runs import MlxRun, free_ports, run_to_end, started
from tests.support.workers.tiny_run import TaskAlone, make_inputs, tiny_shape, train_params

pytest.importorskip("mlx.core")
pytestmark = [pytest.mark.mlx, pytest.mark.xdist_group("mlx")]

STEPS = 50
HALF = 25
TOLERANCE = 1e-4

Said = Mapping[str, Any]


def shape() -> ModelShape:
    return tiny_shape()


def plan() -> TrainPlan:
    changes = {
        "steps": STEPS,
        "checkpoint_every_steps": HALF,
        "decay_steps": 10,
        "learning_rate": 1e-3,
    }
    return TrainPlan.from_plain(derive(shape(), 1).to_plain() | changes)


def plan_on_trunk() -> TrainPlan:
    changes = {"steps": 12, "warmup_steps": 0, "decay_steps": 4}
    return TrainPlan.from_plain(plan().to_plain() | changes)


@contextlib.contextmanager
def ring_of_two(
    plan: TrainPlan, inputs: Mapping[str, str], folder: Path, **more: Any
) -> Generator[list[MlxRun]]:
    """Start two ranks; what each says will be in FOLDER/RANK.json."""
    ring = [f"127.0.0.1:{port}" for port in free_ports(2)]
    params = train_params(shape(), plan) | {"world_size": 2, "ring": ring, **more}
    run = {"inputs": inputs, "folder": str(folder)}
    with contextlib.ExitStack() as ranks:
        yield [
            ranks.enter_context(
                started(
                    [run | {"name": str(rank), "params": params | {"rank": rank}}],
                    folder,
                    f"rank{rank}",
                )
            )
            for rank in range(2)
        ]


def said(folder: Path, name: str) -> Said:
    return json.loads((folder / f"{name}.json").read_text())


def frames(told: Said, kind: str) -> list[Mapping[str, Any]]:
    return [frame for frame in told["frames"] if frame["type"] == kind]


def losses(told: Said) -> list[float]:
    return [frame["values"]["loss"] for frame in frames(told, "Progressed")]


def torch_losses(inputs: dict[str, str], folder: Path) -> list[float]:
    """Train on torch over the same batches; return the loss of each step."""
    task = TaskAlone("train", train_params(shape(), plan()), inputs, folder)
    job = read_job(task, 1)
    found: list[StepDone] = []
    engine = TorchEngine(job.shape, job.plan, job.end_token, ProcessGroup(0, 1), "cpu")
    batches = RankBatches(job.shards, f"{job.plan.seed}/round 1", 6, 2)
    TrainingLoop(engine, job.plan, batches, lambda: False, found.append).run(0)
    return [done.loss for done in found]


def tensors(folder: Path) -> dict[str, np.ndarray]:
    return load_file(folder / "model.safetensors") | load_file(
        folder / "training_state" / "optimizer.safetensors"
    )


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, fork_server: None) -> Path:
    """Return the folder of one process that trained, went on, and went on from torch."""
    folder = tmp_path_factory.mktemp("alone")
    inputs = make_inputs(folder)
    params = train_params(shape(), plan())
    torch_rank.run(TaskAlone("train", params, inputs, folder / "torch"))
    runs = [
        {"name": "whole", "inputs": inputs},
        {"name": "resumed", "inputs": inputs | {"checkpoint": checkpoint(folder, "whole", HALF)}},
        {"name": "moved", "inputs": inputs | {"checkpoint": checkpoint(folder, "torch", HALF)}},
    ]
    given = [{"params": {**params, "engine": "mlx"}, "folder": str(folder), **run} for run in runs]
    for engine in ("mlx", "torch"):
        ended = checkpoint(folder, {"mlx": "whole"}.get(engine, engine), plan().trunk_steps)
        params = train_params(shape(), plan_on_trunk(), round=2, engine="mlx")
        given.append({
            "name": f"second after {engine}",
            "params": params,
            "inputs": inputs | {"checkpoint": ended},
            "folder": str(folder),
        })  # fmt: skip
    run_to_end(given, folder, "alone")
    return folder


def checkpoint(folder: Path, name: str, step: int) -> str:
    return str(folder / name / f"checkpoint-{step:08}")


@pytest.mark.full
def test_both_engines_have_the_same_losses_on_the_same_batches(alone: Path, tmp_path: Path):
    ours = losses(said(alone, "whole"))
    torchs = torch_losses(make_inputs(tmp_path), tmp_path)
    assert len(ours) == len(torchs) == STEPS
    assert max(abs(a - b) for a, b in zip(ours, torchs, strict=True)) < TOLERANCE
    assert ours[-1] < ours[0] - 0.5, "and it learns something"


@pytest.mark.full
def test_a_round_ends_with_the_same_frames_as_on_torch(alone: Path):
    told = said(alone, "whole")
    made = frames(told, "CheckpointWritten")
    assert [(c["step"], c["cursor"], c["tokens"]) for c in (m["progress"] for m in made)] == [
        (25, 150, 2400),
        (40, 240, 3840),
        (50, 300, 4800),
    ]
    last = frames(told, "Progressed")[-1]
    assert (last["done"], last["total"], last["unit"]) == (STEPS, STEPS, "steps")
    speeds = {"tokens", "tokens_per_s", "rank_tokens_per_s", "rank_sequences_per_s"}
    assert set(last["values"]) == {"step", "loss", "lr", "grad_norm", *speeds}
    assert told["counts"]["parameters"] == parameter_count(shape())
    assert (told["summary"]["engine"], told["summary"]["stopped"]) == ("mlx", False)
    (joined,) = frames(told, "GangJoined")
    assert "OpenBLAS" in joined["note"] or sys.platform == "darwin"


def test_a_resumed_run_is_bit_identical_to_an_uninterrupted_one(alone: Path):
    assert losses(said(alone, "resumed")) == losses(said(alone, "whole"))[HALF:]
    whole = tensors(Path(checkpoint(alone, "whole", STEPS)))
    resumed = tensors(Path(checkpoint(alone, "resumed", STEPS)))
    assert whole.keys() == resumed.keys()
    assert all(np.array_equal(whole[name], resumed[name]) for name in whole)


def test_mlx_goes_on_from_a_checkpoint_of_torch(alone: Path):
    ours, whole = losses(said(alone, "moved")), losses(said(alone, "whole"))
    assert len(ours) == STEPS - HALF
    assert max(abs(a - b) for a, b in zip(ours, whole[HALF:], strict=True)) < TOLERANCE


def test_the_next_round_goes_on_with_the_trunk_as_on_torch(alone: Path, tmp_path: Path):
    ended = checkpoint(alone, "torch", plan().trunk_steps)
    params = train_params(shape(), plan_on_trunk(), round=2)
    inputs = make_inputs(tmp_path) | {"checkpoint": ended}
    torch_rank.run(TaskAlone("train", params, inputs, tmp_path / "second"))
    end = plan_on_trunk().trunk_steps
    torchs = tensors(Path(checkpoint(tmp_path, "second", end)))
    for engine in ("torch", "mlx"):
        ours = tensors(Path(checkpoint(alone, f"second after {engine}", end)))
        assert ours.keys() == torchs.keys()
        for name, values in torchs.items():
            np.testing.assert_allclose(ours[name], values, atol=2e-3, err_msg=name)
    told = said(alone, "second after mlx")
    jump = losses(told)[0] - losses(said(alone, "whole"))[plan().trunk_steps]
    assert abs(jump) < 0.3, "the optimizer's moments came along"
    assert frames(told, "CheckpointWritten")[0]["progress"]["tokens"] == 3840 + end * 6 * 16


def test_torch_goes_on_from_a_checkpoint_of_mlx(alone: Path, tmp_path: Path):
    inputs = make_inputs(tmp_path) | {"checkpoint": checkpoint(alone, "whole", HALF)}
    params = train_params(shape(), plan())
    finished = torch_rank.run(TaskAlone("train", params, inputs, tmp_path / "out"))
    assert finished.counts["steps"] == STEPS - HALF
    ours = tensors(tmp_path / "out" / "checkpoint-00000050")
    mlxs = tensors(Path(checkpoint(alone, "whole", STEPS)))
    assert ours.keys() == mlxs.keys()
    for name, values in ours.items():
        np.testing.assert_allclose(values, mlxs[name], atol=2e-3)


def test_a_checkpoint_of_mlx_is_the_folder_that_torch_would_write(alone: Path):
    ours, torchs = (Path(checkpoint(alone, name, STEPS)) for name in ("whole", "torch"))
    for name in ("config.json", "generation_config.json", "tokenizer.json"):
        assert (ours / name).read_text() == (torchs / name).read_text()
    assert tensors(ours).keys() == tensors(torchs).keys()
    load_weights(ours, TorchEngine(shape(), plan(), 0, ProcessGroup(0, 1), "cpu"))


def test_a_node_is_told_of_itself_and_its_right_neighbour_alone(tmp_path: Path):
    from jupiterd.workers.train.mlx.ring import PLACEHOLDER, write_hostfile

    addresses = ["10.0.0.1:4001", "10.0.0.2:4002", "10.0.0.3:4003"]
    file = tmp_path / "ring.json"
    write_hostfile(file, addresses, rank=2)
    assert json.loads(file.read_text()) == [["10.0.0.1:4001"], [PLACEHOLDER], ["10.0.0.3:4003"]]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.full
@pytest.mark.net
def test_a_ring_of_two_does_what_one_process_does(alone: Path, tmp_path: Path):
    with ring_of_two(plan(), make_inputs(tmp_path), tmp_path) as ranks:
        for rank, process in enumerate(ranks):
            assert process.ended() == 0, (tmp_path / f"rank{rank}.log").read_text()
    first, second = said(tmp_path, "0"), said(tmp_path, "1")
    assert "error" not in first, first
    assert losses(first) == losses(second)
    one = losses(said(alone, "whole"))
    assert max(abs(a - b) for a, b in zip(losses(first), one, strict=True)) < TOLERANCE
    assert first["summary"]["engine"] == "mlx/ring"
    assert len(frames(first, "CheckpointWritten")) == 3
    assert not frames(second, "CheckpointWritten"), "rank 0 alone writes"


@pytest.mark.full
@pytest.mark.net
def test_a_rank_that_is_killed_ends_the_other(fork_server: None, tmp_path: Path):
    endless = TrainPlan.from_plain(plan().to_plain() | {"steps": 100_000})
    with ring_of_two(endless, make_inputs(tmp_path), tmp_path) as (survivor, victim):
        while survivor.said.readline().partition(" ")[0] != "3":
            assert survivor.runs(), (tmp_path / "rank0.log").read_text()
        victim.kill()
        assert survivor.ended() == 0
        assert "rank 0 lost its ring" in said(tmp_path, "0")["error"]
