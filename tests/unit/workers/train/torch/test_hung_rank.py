"""A rank that hangs in a collective still gives away the last step that it has finished."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncGenerator, Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file

from jupiterd.cycle.training.plan import TrainPlan, derive
from jupiterd.errors import WorkFailedError
from jupiterd.processes.environment import worker_environment
from jupiterd.processes.process import Worker, start_worker
from jupiterd.processes.routes import free_port
from jupiterd.protocol.frames import CheckpointWritten, Frame, RunTask, StateSaved, StoreAsked
from jupiterd.workers.train.checkpoints.checkpoint import TrainingState, snapshot, write
from jupiterd.workers.train.torch.process_group import ProcessGroup
from jupiterd.workers.train.torch.torch_engine import TorchEngine
from tests.support.workers.open_store import OpenStore
from tests.support.workers.tiny_run import SEQ_LEN, make_inputs, tiny_shape, train_params

pytestmark = [pytest.mark.net, pytest.mark.timeout(120), pytest.mark.usefixtures("warm_starts")]

STEPS = 100_000
TIMEOUT_S = 60.0
HOST = "127.0.0.1"


def plan_of_ranks() -> TrainPlan:
    plan = derive(tiny_shape(), 1, {"steps": STEPS})
    return plan.model_copy(update={"checkpoint_every_steps": 1})


@contextlib.asynccontextmanager
async def rank(
    folder: Path, inputs: dict[str, str], number: int, **params: object
) -> AsyncGenerator[Worker]:
    fields = train_params(
        tiny_shape(), plan_of_ranks(), rank=number, world_size=2, epoch=1, threads=1, **params
    )
    task = "train_mlx" if params["engine"] == "mlx" else "train"
    output = folder / f"rank-{number}"
    output.mkdir()
    order = RunTask(task, fields, inputs, str(output))
    environment = worker_environment(task, fields)
    async with start_worker(order, environment, folder / f"{number}.log") as worker:
        yield worker


@contextlib.asynccontextmanager
async def pair(
    folder: Path, engine: str, begun_at: int = 0
) -> AsyncGenerator[tuple[Worker, Worker]]:
    """Run two ranks; those that go on from a later step never have it come to the second one."""
    inputs = make_inputs(folder)
    late: dict[str, object] = {}
    if begun_at:
        late = {"late_ranks": [1], "from_step": begun_at, "from_checkpoint": "it"}
        inputs["checkpoint"] = str(written_at(begun_at, folder / "it", inputs["tokenizer"]))
    async with contextlib.AsyncExitStack() as stack:
        where: dict[str, object] = {"engine": engine, "interface": "lo"}
        if engine == "mlx":
            where["ring"] = [f"{HOST}:{free_port(HOST)}" for _ in range(2)]
        first = await stack.enter_async_context(rank(folder, inputs, 0, **where, **late))
        second = await stack.enter_async_context(rank(folder, inputs, 1, **where, **late))
        yield first, second


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for something real, as long as it may take."""
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            if is_so():
                return
            await asyncio.sleep(0.01)


async def listen(worker: Worker, heard: list[Frame], store: OpenStore) -> None:
    loop = asyncio.get_running_loop()
    async for frame in worker.frames():
        heard += [frame]
        if isinstance(frame, StoreAsked):
            store.answer_later(frame, partial(loop.call_soon_threadsafe, worker.hand_in))


def steps(heard: list[Frame]) -> list[int]:
    return [frame.progress.step for frame in heard if isinstance(frame, CheckpointWritten)]


def kept(heard: list[Frame]) -> list[CheckpointWritten | None]:
    return [frame.checkpoint for frame in heard if isinstance(frame, StateSaved)]


@pytest.mark.parametrize("engine", ["torch", "mlx"])
async def test_the_last_finished_step_outlives_a_rank_that_hangs(
    tmp_path: Path, engine: str
) -> None:
    heard: list[Frame] = []
    async with pair(tmp_path, engine) as (first, second), asyncio.TaskGroup() as group:
        store = OpenStore()
        listening = [
            group.create_task(listen(worker, frames, store))
            for worker, frames in ((first, heard), (second, []))
        ]
        await until(lambda: len(steps(heard)) >= 5)
        os.kill(second.pid, signal.SIGSTOP)
        try:
            first.save_state(0)
            await until(lambda: bool(kept(heard)))
            (state,) = kept(heard)
            assert state is not None
            step = state.progress.step
            assert step >= 5
            # It is the last one finished: all before it are written without the rank that hangs.
            await until(lambda: steps(heard)[-1] >= step - 1)
            assert step >= steps(heard)[-1]
        finally:
            os.kill(second.pid, signal.SIGCONT)
        await until(lambda: steps(heard)[-1] > step)
        for each in listening:
            each.cancel()
    written, saved = (load(tmp_path / "rank-0" / name) for name in (named(step), state.path))
    assert written.keys() == saved.keys()
    assert all(np.array_equal(written[name], saved[name]) for name in written)


@pytest.mark.full
@pytest.mark.parametrize("engine", ["torch", "mlx"])
async def test_a_newcomer_killed_before_its_state_came_costs_no_step_and_gives_away_none(
    tmp_path: Path, engine: str
) -> None:
    heard: list[Frame] = []
    of_newcomer: list[Frame] = []
    async with (
        pair(tmp_path, engine, begun_at=3) as (first, newcomer),
        asyncio.TaskGroup() as group,
    ):
        store = OpenStore()
        for worker, frames in ((first, heard), (newcomer, of_newcomer)):
            group.create_task(listen_until_killed(worker, frames, store))
        await until(lambda: len(steps(heard)) >= 3)
        newcomer.save_state(0)
        await until(lambda: bool(kept(of_newcomer)))
        os.kill(newcomer.pid, signal.SIGKILL)
        first.save_state(0)
        await until(lambda: bool(kept(heard)))
        os.kill(first.pid, signal.SIGKILL)
    assert kept(of_newcomer) == [None], "it has no weights of its own yet"
    (state,) = kept(heard)
    assert state is not None
    assert state.progress.step >= steps(heard)[-1], "none that was finished is lost"
    assert load(tmp_path / "rank-0" / state.path), "it is all there"


async def listen_until_killed(worker: Worker, heard: list[Frame], store: OpenStore) -> None:
    with pytest.raises(WorkFailedError, match="SIGKILL"):
        await listen(worker, heard, store)


def written_at(step: int, folder: Path, tokenizer: str) -> Path:
    """Write a checkpoint of the ranks' plan."""
    shape, plan = tiny_shape(), plan_of_ranks()
    engine = TorchEngine(shape, plan, 0, ProcessGroup(0, 1), "cpu")
    sequences = step * plan.batch_sequences
    state = TrainingState(
        1, step, sequences * SEQ_LEN, sequences, plan.hash(), shape.architecture_hash(), ""
    )
    write(snapshot(engine, state), folder, Path(tokenizer))
    return folder


def named(step: int) -> str:
    return f"checkpoint-{step:08}"


def load(folder: Path) -> dict[str, NDArray[np.float32]]:
    moments = folder / "training_state" / "optimizer.safetensors"
    return load_file(folder / "model.safetensors") | load_file(moments)
