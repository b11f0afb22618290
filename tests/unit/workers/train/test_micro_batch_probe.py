"""A rank tries micro batches on its device, and trains as if it had known the best one."""

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from torch import nn

from jupiterd.cycle.micro_batches.known_choices import MOST_BEGUN, Choice
from jupiterd.cycle.training.engine_options import DeviceAbilities
from jupiterd.cycle.training.plan import ModelShape, TrainPlan, derive
from jupiterd.protocol.frames import Preparing
from jupiterd.protocol.preparing_stage import TRYING
from jupiterd.workers.tokens.shards import ShardSet
from jupiterd.workers.train.batches import RankBatches
from jupiterd.workers.train.kept_choices import KeptChoices
from jupiterd.workers.train.micro_batch_probe import (
    FILE,
    LEAST_S,
    MicroBatchProbe,
    ProbeSetup,
)
from jupiterd.workers.train.torch import torch_engine, torch_rank
from jupiterd.workers.train.torch.process_group import ProcessGroup
from jupiterd.workers.train.torch.torch_engine import TorchEngine
from jupiterd.workers.training_engine import MicroBatch, TrainingEngine, digest
from tests.support.workers.tiny_run import TaskAlone, make_inputs, tiny_shape, train_params

ENGINES = ("torch", pytest.param("mlx", marks=pytest.mark.mlx))
GPT2 = {"architecture": "gpt2", "ff": 128, "kv_heads": 2}
BATCH, DEFAULT = 16, 2
STEPS = 3


def plan_of(shape: ModelShape, **changes: Any) -> TrainPlan:
    plan = derive(shape, 1, {"batch_sequences": BATCH, "steps": 1000})
    return plan.model_copy(update=changes)


def engine_of(name: str, shape: ModelShape, plan: TrainPlan) -> TrainingEngine:
    """Return an engine on a device that is no CPU, as far as anybody is told."""
    engine: Any
    if name == "mlx":
        pytest.importorskip("mlx.core")
        from jupiterd.workers.train.mlx.mlx_engine import MlxTrainingEngine
        from jupiterd.workers.train.mlx.ring import Ring

        engine = MlxTrainingEngine(shape, plan, 0, Ring(0, 1))
    else:
        engine = TorchEngine(shape, plan, 0, ProcessGroup(0, 1), "cpu")
    engine.abilities = replace(engine.abilities, kind="test")
    return engine


class Speeds:
    """Computes each pass, and says that it took what a device with launches to wait for takes."""

    def __init__(self, engine: TrainingEngine, half_at: float = 10.0, holds: int = BATCH) -> None:
        self.tried: list[int] = []
        self._pass = engine.try_pass
        self._half_at, self._holds = half_at, holds
        cast("Any", engine).try_pass = self

    def __call__(self, batch: MicroBatch) -> float:
        size = len(batch.inputs)
        self.tried.append(size)
        assert self._pass(batch) > 0
        if size > self._holds:
            raise RuntimeError("[malloc] Unable to allocate 99 bytes.")
        return (size + self._half_at) / 100


def task_of(folder: Path, **params: Any) -> TaskAlone:
    return TaskAlone("train", {FILE: str(folder / "choices.json")} | params, {}, folder / "out")


def chosen(
    engine: TrainingEngine,
    shape: ModelShape,
    plan: TrainPlan,
    task: TaskAlone,
    *,
    may_search: bool = True,
    clock: Callable[[], float] = lambda: 0.0,
) -> int:
    setup = ProbeSetup(shape, plan, plan.steps, may_search)
    return MicroBatchProbe(task, engine, setup, clock).chosen()


def learned(engine: TrainingEngine, micro_batch: int, shards: Path) -> tuple[bytes, bytes, str]:
    """Return what a few steps leave: weights, moments, random state."""
    engine.begin(has_same_weights=True)
    data = RankBatches(ShardSet(shards), "a", BATCH, micro_batch)
    for step in range(STEPS):
        engine.step(list(data.of_step(step, (BATCH,))), 1e-2)
    return digest(engine.weights()), digest(engine.moments()), engine.random_state()


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("masks", ["off", "on"])
def test_training_after_a_probe_is_that_without_one(name: str, masks: str, tmp_path: Path):
    shape = tiny_shape()
    options = derive(shape, 1).options.model_copy(update={"document_masks": masks})
    plan = plan_of(shape, options=options)
    shards = Path(make_inputs(tmp_path)["shards"])
    engine, task = engine_of(name, shape, plan), task_of(tmp_path)
    speeds = Speeds(engine)
    micro_batch = chosen(engine, shape, plan, task)
    assert micro_batch == BATCH
    assert set(speeds.tried) == {1, 2, 4, 8, 16}
    assert speeds.tried.count(1) == 1, "it warms up"

    fixed = plan.model_copy(update={"micro_batch_sequences": BATCH})
    other = engine_of(name, shape, fixed)
    assert learned(engine, micro_batch, shards) == learned(other, BATCH, shards)


def test_a_pass_draws_no_random_numbers_that_training_would_draw(tmp_path: Path):
    shape = tiny_shape(**GPT2)
    plan = plan_of(shape)
    engine = engine_of("torch", shape, plan)
    before = engine.random_state()
    model: Any = engine
    for module in model._model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.1
    Speeds(engine)
    chosen(engine, shape, plan, task_of(tmp_path))
    assert engine.random_state() == before


@pytest.mark.parametrize("name", ENGINES)
def test_what_was_found_is_kept_and_said(name: str, tmp_path: Path):
    shape = tiny_shape()
    plan = plan_of(shape)
    engine, task = engine_of(name, shape, plan), task_of(tmp_path)
    Speeds(engine)
    assert chosen(engine, shape, plan, task) == BATCH
    said = [f for f in task.frames if isinstance(f, Preparing)]
    assert [frame.detail for frame in said] == ["2 of 16", "4 of 16", "8 of 16", "16 of 16"]
    assert {(frame.stage, frame.expected_s > 0) for frame in said} == {(TRYING, True)}

    again = engine_of(name, shape, plan)
    speeds = Speeds(again)
    assert chosen(again, shape, plan, task_of(tmp_path), may_search=False) == BATCH
    assert speeds.tried == []


@pytest.mark.parametrize("name", ENGINES)
def test_memory_that_runs_out_is_an_answer(name: str, tmp_path: Path):
    shape = tiny_shape()
    plan = plan_of(shape)
    engine = engine_of(name, shape, plan)
    speeds = Speeds(engine, holds=6)
    assert chosen(engine, shape, plan, task_of(tmp_path)) == 6
    assert 8 in speeds.tried


def test_a_larger_size_that_a_kernel_refuses_is_an_answer(tmp_path: Path):
    shape = tiny_shape()
    plan = plan_of(shape)
    engine = engine_of("torch", shape, plan)
    default = plan.micro_batch_sequences

    def passes_to_the_default(batch: MicroBatch) -> float:
        if len(batch.inputs) > default:
            raise RuntimeError("canUse32BitIndexMath")
        return 0.01

    cast("Any", engine).try_pass = passes_to_the_default
    assert 1 <= chosen(engine, shape, plan, task_of(tmp_path)) <= default


def test_another_failure_is_one(tmp_path: Path):
    shape = tiny_shape()
    plan = plan_of(shape)
    engine = engine_of("torch", shape, plan)

    def fails(_: MicroBatch) -> float:
        raise RuntimeError("no kernel image")

    cast("Any", engine).try_pass = fails
    with pytest.raises(RuntimeError, match="no kernel"):
        chosen(engine, shape, plan, task_of(tmp_path))


def test_a_search_that_ends_its_worker_twice_isnt_begun_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    shape = tiny_shape()
    plan = plan_of(shape)

    def ends(_: MicroBatch) -> float:
        raise SystemExit

    for _ in range(MOST_BEGUN):
        engine = engine_of("torch", shape, plan)
        cast("Any", engine).try_pass = ends
        with pytest.raises(SystemExit):
            chosen(engine, shape, plan, task_of(tmp_path))
    engine = engine_of("torch", shape, plan)
    speeds = Speeds(engine)
    assert chosen(engine, shape, plan, task_of(tmp_path)) == DEFAULT
    assert speeds.tried == []
    assert "earlier searches ended their workers" in capsys.readouterr().err


def test_a_rank_that_is_to_end_tries_nothing_and_keeps_nothing(tmp_path: Path):
    shape = tiny_shape()
    plan = plan_of(shape)
    task = task_of(tmp_path)
    task.stop()
    engine = engine_of("torch", shape, plan)
    speeds = Speeds(engine)
    assert chosen(engine, shape, plan, task) == DEFAULT
    assert speeds.tried == []
    assert chosen(engine, shape, plan, task_of(tmp_path)) == BATCH


@pytest.mark.parametrize("text", ["", "{", '{"a": 1}'])
def test_a_damaged_file_costs_a_search(text: str, tmp_path: Path):
    shape = tiny_shape()
    plan = plan_of(shape)
    (tmp_path / "choices.json").write_bytes(text.encode() + b"\xff" * (not text))
    engine = engine_of("torch", shape, plan)
    Speeds(engine)
    assert chosen(engine, shape, plan, task_of(tmp_path)) == BATCH


def test_a_file_that_cant_be_written_costs_no_training(tmp_path: Path):
    shape = tiny_shape()
    plan = plan_of(shape)
    engine = engine_of("torch", shape, plan)
    Speeds(engine)
    nowhere = task_of(tmp_path, **{FILE: str(tmp_path / "no" / "folder")})
    assert chosen(engine, shape, plan, nowhere) == BATCH


@pytest.mark.parametrize(
    ("params", "changes"),
    [
        ({"micro_batch_sequences": 1}, {}),
        ({}, {"options": {"micro_batch": "fixed"}}),
        ({}, {"steps": 0}),
    ],
)
def test_what_is_fixed_or_has_no_room_isnt_tried(
    params: dict[str, Any], changes: dict[str, Any], tmp_path: Path
):
    shape = tiny_shape()
    plan = TrainPlan.from_plain(plan_of(shape).to_plain() | changes)
    engine = engine_of("torch", shape, plan)
    speeds = Speeds(engine)
    found = chosen(engine, shape, plan, task_of(tmp_path, **params))
    assert found == params.get("micro_batch_sequences", DEFAULT)
    assert speeds.tried == []


def test_a_cpu_keeps_its_default(tmp_path: Path):
    shape = tiny_shape()
    plan = plan_of(shape)
    engine: Any = engine_of("torch", shape, plan)
    engine.abilities = replace(engine.abilities, kind="cpu")
    speeds = Speeds(engine)
    assert chosen(engine, shape, plan, task_of(tmp_path)) == DEFAULT
    assert speeds.tried == []


def test_the_search_takes_no_longer_than_it_may(tmp_path: Path):
    shape = tiny_shape()
    plan = plan_of(shape)
    engine, now_s = engine_of("torch", shape, plan), [0.0]
    real = engine.try_pass

    def slow(batch: MicroBatch) -> float:
        real(batch)
        now_s[0] += (took_s := len(batch.inputs) * 0.2)
        return took_s

    cast("Any", engine).try_pass = slow
    chosen(engine, shape, plan, task_of(tmp_path), clock=lambda: now_s[0])
    assert 0 < now_s[0] <= LEAST_S, "the training is a matter of seconds"


def test_a_whole_training_probes_before_its_first_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def of_no_cpu(_: str) -> DeviceAbilities:
        return DeviceAbilities("torch", "test", 0)

    monkeypatch.setattr(torch_engine, "abilities", of_no_cpu)
    inputs, plan = make_inputs(tmp_path), derive(tiny_shape(), 1)
    params = train_params(tiny_shape(), plan) | {FILE: str(tmp_path / "choices.json")}
    task = TaskAlone("train", params, inputs, tmp_path / "out")
    torch_rank.run(task)
    stages = [frame.stage for frame in task.frames if isinstance(frame, Preparing)]
    assert stages.index(TRYING) < stages.index("first_step")
    again = TaskAlone("train", params, inputs, tmp_path / "again")
    torch_rank.run(again)
    assert TRYING not in [f.stage for f in again.frames if isinstance(f, Preparing)]


def test_a_choice_that_cant_be_kept_leaves_no_file_behind(tmp_path: Path):
    (tmp_path / "choices").mkdir()  # where the file would be
    KeptChoices(str(tmp_path / "choices"), "a" * 64).keep(Choice(2, 4, 10.0))
    assert [each.name for each in tmp_path.iterdir()] == ["choices"]


def test_ranks_that_keep_their_choices_at_a_time_lose_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The second begins when the first has read the file, and not yet replaced it."""
    path, second = tmp_path / "choices", Choice(4, 8, 20.0)
    others: list[threading.Thread] = []
    read = KeptChoices._text

    def read_while_another_begins(self: KeptChoices) -> str:
        found = read(self)
        if not others:
            other = threading.Thread(target=KeptChoices(str(path), "b" * 64).keep, args=(second,))
            others.append(other)
            other.start()
            other.join(0.2)  # as long as it takes where nobody waits
        return found

    monkeypatch.setattr(KeptChoices, "_text", read_while_another_begins)
    KeptChoices(str(path), "a" * 64).keep(Choice(2, 4, 10.0))
    others[0].join()
    assert KeptChoices(str(path), "a" * 64).found(4) == Choice(2, 4, 10.0)
    assert KeptChoices(str(path), "b" * 64).found(8) == second
