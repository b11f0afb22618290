"""Training: one process, two ranks, stopping and going on."""

import errno
import itertools
import multiprocessing
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from jupiterd.cycle.base.positions import at
from jupiterd.cycle.training.adapters.adapter import parse_adapter
from jupiterd.cycle.training.architectures import parameter_count
from jupiterd.cycle.training.plan import TrainPlan, derive
from jupiterd.errors import ConflictError, CorruptWeightsError, LossDivergedError, UsageError
from jupiterd.protocol.frames import (
    CheckpointUnsaved,
    CheckpointWritten,
    Frame,
    GangJoined,
    Preparing,
    Progressed,
    RankBusy,
    TaskFinished,
)
from jupiterd.workers.tokens.shards import ShardSet
from jupiterd.workers.train.batches import RankBatches
from jupiterd.workers.train.checkpoints import checkpoint, checkpoint_saver, rank_checkpoints
from jupiterd.workers.train.checkpoints.checkpoint import TrainingSnapshot
from jupiterd.workers.train.job import read_job
from jupiterd.workers.train.loop import TrainingLoop
from jupiterd.workers.train.sequence_order import SequenceOrder
from jupiterd.workers.train.torch import torch_engine, torch_rank
from jupiterd.workers.train.torch.process_group import ProcessGroup
from jupiterd.workers.train.torch.torch_engine import TorchEngine
from jupiterd.workers.train.torch.torch_model import make_model
from tests.support.workers.open_store import OpenStore
from tests.support.workers.tiny_run import TaskAlone, make_inputs, tiny_shape, train_params


@pytest.fixture
def inputs(tmp_path: Path) -> dict[str, str]:
    return make_inputs(tmp_path)


def train(
    inputs: dict[str, str], output: Path, *, stop: bool = False, **changes: Any
) -> tuple[TaskFinished, list[Frame]]:
    shape = changes.pop("shape", tiny_shape())
    task = TaskAlone("train", train_params(shape, **changes), inputs, output)
    if stop:
        task.stop()
    finished = torch_rank.run(task)
    return finished, task.frames


def checkpoints(frames: list[Frame]) -> list[CheckpointWritten]:
    return [frame for frame in frames if isinstance(frame, CheckpointWritten)]


def tensors(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors") | load_file(
        folder / "training_state" / "optimizer.safetensors"
    )


def test_parameters_are_counted_as_the_model_has_them():
    for shape in (tiny_shape(), tiny_shape(tied=False, heads=4, kv_heads=2)):
        model = make_model(shape, seed=0)
        assert parameter_count(shape) == sum(p.numel() for p in model.parameters())


def test_first_weights_follow_from_the_seed_alone():
    first, torch_state = make_model(tiny_shape(), 3).state_dict(), torch.get_rng_state()
    again = make_model(tiny_shape(), 3).state_dict()
    other = make_model(tiny_shape(), 4).state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["model.embed_tokens.weight"], other["model.embed_tokens.weight"])
    assert float(first["model.layers.0.mlp.up_proj.weight"].std()) == pytest.approx(0.02, rel=0.1)
    assert torch.equal(torch_state, torch.get_rng_state())


def test_ranks_share_the_global_batch_without_gap_or_overlap(inputs: dict[str, str]):
    shards = ShardSet(Path(inputs["shards"]))
    whole = list(RankBatches(shards, "s", 7, 7).at(14))
    for world_size in (2, 3, 7):
        ranks = [RankBatches(shards, "s", 7, 2, rank, world_size) for rank in range(world_size)]
        parts = [part.inputs for rank in ranks for part in rank.at(14)]
        assert np.array_equal(np.concatenate(parts), whole[0][0])


@pytest.mark.parametrize(
    ("batch", "most", "sizes"),
    [(6, 6, [6]), (6, 7, [6]), (7, 6, [3, 4]), (12, 6, [6, 6]), (13, 6, [4, 4, 5])],
)
def test_micro_batches_are_as_few_as_can_be_and_alike(
    inputs: dict[str, str], batch: int, most: int, sizes: list[int]
):
    batches = RankBatches(ShardSet(Path(inputs["shards"])), "s", batch, most)
    assert [len(each.inputs) for each in batches.at(0)] == sizes


def test_positions_that_lie_apart_are_trained_on_one_after_the_other(inputs: dict[str, str]):
    shards = ShardSet(Path(inputs["shards"]))
    ranges, batch, first_step = [(3, 8), (12, 13), (17, 29)], 6, 40
    order = SequenceOrder(shards.sequences, "s")
    wanted = [int(order.at(at(ranges, n), 1)[0]) for n in range(3 * batch)]
    parts = [
        found.inputs
        for step in range(first_step, first_step + 3)
        for rank in range(2)
        for found in RankBatches(shards, "s", 99, 4, rank, 2)
        .through(ranges, first_step, batch)
        .of_step(step, (2, 4))
    ]
    assert np.array_equal(np.concatenate(parts), shards.sequences_at(np.array(wanted))[:, :-1])


def test_targets_are_the_inputs_one_token_on(inputs: dict[str, str]):
    (batch,) = RankBatches(ShardSet(Path(inputs["shards"])), "s", 4, 4).at(0)
    given, targets, documents, counted, _, keys = batch
    assert given.shape == targets.shape == (4, 16)
    assert np.array_equal(given[:, 1:], targets[:, :-1])
    assert documents is None
    assert counted is None
    assert keys is None
    assert batch.divisor(4) == targets.size


def test_a_round_is_trained_and_its_last_checkpoint_is_handed_over(
    inputs: dict[str, str], tmp_path: Path
):
    finished, frames = train(inputs, tmp_path / "out")
    made = checkpoints(frames)
    assert [(c.progress.step, c.progress.cursor, c.progress.tokens) for c in made] == [
        (3, 18, 288),
        (5, 30, 480),  # the trunk's end
        (6, 36, 576),
    ]
    stages = [frame.stage for frame in frames if isinstance(frame, Preparing)]
    assert stages == ["loading", "first_step"]
    (begun,) = [n for n, f in enumerate(frames) if isinstance(f, RankBusy) and f.begins]
    assert begun < min(n for n, frame in enumerate(frames) if isinstance(frame, Progressed))
    busy = [frame for frame in frames if isinstance(frame, RankBusy) and not frame.begins]
    assert {frame.step for frame in busy} == {3, 5, 6}
    assert finished.counts == {
        "steps": 6,
        "tokens": 576,
        "parameters": parameter_count(tiny_shape()),
    }
    assert finished.summary["stopped"] is False
    assert finished.summary["engine"] == "torch"
    last = [frame for frame in frames if isinstance(frame, Progressed)][-1]
    assert (last.done, last.total, last.unit) == (6, 6, "steps")
    assert set(last.values) == {
        "step", "tokens", "loss", "lr", "grad_norm", "tokens_per_s", "rank_tokens_per_s",
        "rank_sequences_per_s",
    }  # fmt: skip
    assert last.values["tokens"] == 576, "as many as the checkpoint says"
    assert last.values["rank_tokens_per_s"] == last.values["tokens_per_s"], "it trains alone"
    assert last.values["rank_sequences_per_s"] > 0
    assert made[-1].progress.loss < 5.8, "it learns something: a guess costs 5.70 nats at first"


class Clock:
    """The module `time`, as far as checkpoints read it."""

    def __init__(self, ticks: Iterator[float]) -> None:
        self._ticks = ticks

    def monotonic(self) -> float:
        return next(self._ticks)


@pytest.mark.parametrize(
    ("members", "saved"), [(["attic", "cellar"], [2, 4, 5, 6]), (["attic"], [1, 2, 3, 4, 5, 6])]
)
def test_slow_steps_are_saved_by_the_clock_and_sooner_by_one_machine(
    inputs: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    members: list[str],
    saved: list[int],
):
    ticks = itertools.count(0.0, 70.0)  # each look at the clock is 70 s after the one before
    monkeypatch.setattr(rank_checkpoints, "time", Clock(ticks))
    rarely = derive(tiny_shape(), 1).model_copy(update={"checkpoint_every_steps": 100})
    _, frames = train(inputs, tmp_path / "out", plan=rarely, members=members)
    assert [c.progress.step for c in checkpoints(frames)] == saved, "5 and 6 are the plan's"


def full_disk_at(monkeypatch: pytest.MonkeyPatch, *steps: int) -> None:
    """Let there be no room for the checkpoints of these steps."""
    whole = checkpoint.write

    def write(taken: TrainingSnapshot, folder: Path, tokenizer: Path) -> None:
        if taken.state.step in steps:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        whole(taken, folder, tokenizer)

    monkeypatch.setattr(checkpoint_saver, "write", write)


def test_a_disk_that_is_full_costs_a_checkpoint_and_no_step(
    inputs: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    train(inputs, tmp_path / "roomy")
    full_disk_at(monkeypatch, 3)
    finished, frames = train(inputs, tmp_path / "full")
    (missed,) = [frame for frame in frames if isinstance(frame, CheckpointUnsaved)]
    assert (missed.step, "no room for the checkpoint of step 3" in missed.message) == (3, True)
    assert [c.progress.step for c in checkpoints(frames)] == [5, 6]
    assert finished.counts["steps"] == 6
    whole, again = (tensors(tmp_path / name / "checkpoint-00000006") for name in ("roomy", "full"))
    assert all(torch.equal(whole[name], again[name]) for name in whole)


def test_training_isn_t_done_while_its_last_checkpoint_finds_no_room(
    inputs: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    full_disk_at(monkeypatch, 6)
    with pytest.raises(OSError, match="No space left"):
        train(inputs, tmp_path / "full")


def test_a_resumed_run_is_bit_identical_to_an_uninterrupted_one(
    inputs: dict[str, str], tmp_path: Path
):
    train(inputs, tmp_path / "whole")
    _, frames = train(
        inputs | {"checkpoint": str(tmp_path / "whole" / "checkpoint-00000003")},
        tmp_path / "resumed",
    )
    assert [c.progress.step for c in checkpoints(frames)] == [5, 6]
    whole = tensors(tmp_path / "whole" / "checkpoint-00000006")
    resumed = tensors(tmp_path / "resumed" / "checkpoint-00000006")
    assert whole.keys() == resumed.keys()
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def test_two_runs_with_one_seed_are_bit_identical(inputs: dict[str, str], tmp_path: Path):
    for name in ("a", "b"):
        train(inputs, tmp_path / name)
    first, second = (tensors(tmp_path / name / "checkpoint-00000006") for name in ("a", "b"))
    assert all(torch.equal(first[name], second[name]) for name in first)


def round_two(inputs: dict[str, str], folder: Path, loaded: Path) -> list[CheckpointWritten]:
    """Go on with the trunk that was saved there, in another order of the data."""
    plan = derive(tiny_shape(), 2, goes_on=True)
    _, frames = train(inputs | {"checkpoint": str(loaded)}, folder, plan=plan, round=2)
    return checkpoints(frames)


def test_two_rounds_on_the_trunk_are_one_training_that_was_never_interrupted(
    inputs: dict[str, str], tmp_path: Path
):
    train(inputs, tmp_path / "first")
    made = round_two(inputs, tmp_path / "second", tmp_path / "first" / "checkpoint-00000005")
    assert [(c.progress.step, c.progress.cursor, c.progress.tokens) for c in made] == [
        (3, 18, 480 + 288),
        (4, 24, 480 + 384),
    ]
    job = read_job(TaskAlone("train", train_params(tiny_shape()), inputs, tmp_path / "whole"), 1)
    engine = TorchEngine(job.shape, job.plan, job.end_token, ProcessGroup(0, 1), "cpu")
    for number in (1, 2):
        plan = derive(tiny_shape(), number, goes_on=number > 1)
        batches = RankBatches(job.shards, f"{plan.seed}/round {number}", 6, 2)
        loop = TrainingLoop(
            engine, plan, batches, lambda: False, lambda _: None, end_step=plan.trunk_steps
        )
        loop.run(0)
    found = tensors(tmp_path / "second" / "checkpoint-00000003")
    whole = {**engine.weights(), **engine.moments()}
    assert found.keys() == whole.keys()
    for name, values in found.items():
        torch.testing.assert_close(values, torch.from_numpy(whole[name]), msg=name)


def test_a_round_on_the_trunk_that_is_interrupted_goes_on_bit_for_bit(
    inputs: dict[str, str], tmp_path: Path
):
    train(inputs, tmp_path / "first")
    round_two(inputs, tmp_path / "whole", tmp_path / "first" / "checkpoint-00000005")
    round_two(inputs, tmp_path / "again", tmp_path / "whole" / "checkpoint-00000003")
    whole, again = (tensors(tmp_path / name / "checkpoint-00000004") for name in ("whole", "again"))
    assert all(torch.equal(whole[name], again[name]) for name in whole)


def test_what_a_branch_ends_with_gives_the_next_round_its_weights_alone(
    inputs: dict[str, str], tmp_path: Path
):
    train(inputs, tmp_path / "first")
    before = str(tmp_path / "first" / "checkpoint-00000006")
    plan = derive(tiny_shape(), 2)
    finished, frames = train(
        inputs | {"checkpoint": before}, tmp_path / "second", plan=plan, round=2
    )
    last = checkpoints(frames)[-1]
    assert (last.progress.step, last.progress.cursor) == (4, 24), (
        "steps and cursor are the new round's"
    )
    assert last.progress.tokens == 576 + 384, "tokens go on along the line"
    assert finished.counts["steps"] == 4


def test_a_stop_keeps_the_finished_step(inputs: dict[str, str], tmp_path: Path):
    finished, frames = train(inputs, tmp_path / "out", stop=True)
    assert [c.progress.step for c in checkpoints(frames)] == [1]
    assert finished.summary["stopped"] is True
    assert finished.counts["steps"] == 1


def test_a_rank_says_that_it_loads_and_then_compiles_before_its_first_step(
    inputs: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(torch, "compile", lambda called, **_: called)  # what it would compile to
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    plan = derive(tiny_shape(), 1, {"steps": 2, "batch_sequences": 6})
    options = plan.options.model_copy(update={"compile": "on"})
    plan = plan.model_copy(update={"options": options})
    _, frames = train(inputs, tmp_path / "out", plan=plan)
    first = min(n for n, frame in enumerate(frames) if isinstance(frame, Progressed))
    before = [frame.stage for frame in frames[:first] if isinstance(frame, Preparing)]
    assert before == ["loading", "compiling"]
    assert not any(isinstance(frame, Preparing) for frame in frames[first:])
    assert not any(isinstance(frame, RankBusy) and frame.begins for frame in frames), (
        "nobody is to judge how long a first step takes that is compiled"
    )


def test_nothing_is_left_to_do_after_the_last_step(inputs: dict[str, str], tmp_path: Path):
    train(inputs, tmp_path / "first")
    last = str(tmp_path / "first" / "checkpoint-00000006")
    finished, frames = train(inputs | {"checkpoint": last}, tmp_path / "second")
    assert finished.counts["steps"] == 0
    assert frames == [GangJoined("cpu", ""), Preparing("loading")]


@pytest.mark.parametrize("how", ["cut short", "missing", "no safetensors at all"])
def test_damaged_weights_to_begin_with_end_the_run_at_once(
    inputs: dict[str, str], tmp_path: Path, how: str
):
    train(inputs, tmp_path / "first")
    file = tmp_path / "first" / "checkpoint-00000006" / "model.safetensors"
    if how == "missing":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-9] if how == "cut short" else b"rubbish")
    with pytest.raises(CorruptWeightsError, match=r"the run can't begin: .*model.safetensors") as e:
        train(inputs | {"weights": str(file.parent)}, tmp_path / "second")
    assert e.value.is_permanent


@pytest.mark.parametrize("changes", [{"vocab_size": 257}, {"seq_len": 32}])
def test_data_packed_for_another_size_is_refused(
    inputs: dict[str, str], tmp_path: Path, changes: dict[str, int]
):
    with pytest.raises(UsageError, match="sequences of 16 and a vocabulary of 300"):
        train(inputs, tmp_path / "out", shape=tiny_shape(**changes))


def test_a_batch_too_small_to_be_shared_is_refused(inputs: dict[str, str], tmp_path: Path):
    task = TaskAlone("train", train_params(tiny_shape()), inputs, tmp_path / "out")
    with pytest.raises(UsageError, match="can't be shared by 7 ranks"):
        read_job(task, world_size=7)


def test_a_checkpoint_of_another_plan_is_refused(inputs: dict[str, str], tmp_path: Path):
    train(inputs, tmp_path / "first")
    checkpoint = str(tmp_path / "first" / "checkpoint-00000003")
    with pytest.raises(ConflictError, match="another plan"):
        train(
            inputs | {"checkpoint": checkpoint},
            tmp_path / "second",
            plan=derive(tiny_shape(), 1, {"steps": 9}),
        )


def test_a_loss_that_is_no_number_ends_the_run(
    inputs: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def broken(*args: Any, **kwargs: Any) -> Any:
        model = make_model(*args, **kwargs)
        torch.nn.init.constant_(model.model.norm.weight, float("nan"))
        return model

    monkeypatch.setattr(torch_engine, "make_model", broken)
    with pytest.raises(
        LossDivergedError, match="no longer a number at step 0; the last good checkpoint is none"
    ) as told:
        train(inputs, tmp_path / "out")
    assert "the weights that it begins with" in told.value.hint


def beside_frozen(plan: TrainPlan) -> TrainPlan:
    """Return a plan that trains an adapter."""
    options = plan.options.model_copy(update={"adapter": parse_adapter("rank=4,dropout=0.1,dora")})
    return plan.model_copy(update={"options": options})


def _rank(rank: int, stores: list[str], inputs: dict[str, str], folder: str) -> None:
    """Train thrice as one of two ranks, in a process of its own; in the end rank 1 is stopped.

    The second time they train an adapter beside what the first has come to.
    """
    for epoch, name in enumerate(("whole", "adapted", "stopped")):
        meeting = {"store": stores[epoch], "timeout_s": 30}
        plan, given = derive(tiny_shape(), 1), dict(inputs)
        if name == "adapted":
            plan = beside_frozen(plan)
            given["weights"] = str(Path(folder) / "whole" / "0" / "checkpoint-00000006")
        params = train_params(tiny_shape(), plan, rank=rank, world_size=2, epoch=epoch, **meeting)
        task = TaskAlone("train", params, given, Path(folder) / name / str(rank))
        if name == "stopped" and rank == 1:
            task.stop()
        finished = torch_rank.run(task)
        (Path(folder) / name / f"{rank}.steps").write_text(str(finished.counts["steps"]))
    os._exit(0)  # as a worker does


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder in which two ranks have trained: starting them takes most of the time."""
    folder = tmp_path_factory.mktemp("gang")
    inputs = make_inputs(folder)
    stores = [OpenStore().serve() for _ in range(3)]
    spawn = multiprocessing.get_context("spawn")
    ranks = [
        spawn.Process(target=_rank, args=(rank, stores, inputs, str(folder))) for rank in range(2)
    ]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(50)
    assert [process.exitcode for process in ranks] == [0, 0]
    return folder


@pytest.mark.net
def test_two_ranks_do_what_one_process_does(two_ranks: Path, tmp_path: Path):
    train(make_inputs(tmp_path), tmp_path / "one")
    for step in (3, 6):
        one = tensors(tmp_path / "one" / f"checkpoint-{step:08}")
        two = tensors(two_ranks / "whole" / "0" / f"checkpoint-{step:08}")
        for name in one:
            torch.testing.assert_close(one[name], two[name], atol=1e-4, rtol=0)
    assert not list((two_ranks / "whole" / "1").iterdir()), "rank 0 alone writes"


@pytest.mark.net
def test_two_ranks_train_an_adapter_as_one_process_does(two_ranks: Path, tmp_path: Path):
    frozen = {"weights": str(two_ranks / "whole" / "0" / "checkpoint-00000006")}
    train(
        make_inputs(tmp_path) | frozen,
        tmp_path / "one",
        plan=beside_frozen(derive(tiny_shape(), 1)),
    )
    file = "checkpoint-00000006/adapter_model.safetensors"
    one, two = load_file(tmp_path / "one" / file), load_file(two_ranks / "adapted" / "0" / file)
    assert one.keys() == two.keys()
    for name, values in one.items():
        torch.testing.assert_close(values, two[name], atol=1e-4, rtol=0)


@pytest.mark.full
@pytest.mark.net
def test_when_one_rank_is_told_to_stop_all_stop_at_the_same_step(two_ranks: Path):
    steps = [(two_ranks / "stopped" / f"{rank}.steps").read_text() for rank in range(2)]
    assert steps == ["1", "1"]
    assert (two_ranks / "stopped" / "0" / "checkpoint-00000001").is_dir()
