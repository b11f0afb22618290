"""Trains one rank, slowed down or disturbed, as a file says.

It says: engine, params, inputs, folder, sequence_s (what each sequence takes longer), and
nudge_step (a step after which one weight is changed by a little; 0: none). What became of each step
is written to FOLDER/steps.json, and the error, if there was one. Where it says an address, the task
comes from there, and what becomes of it is said there, as between a worker and its daemon.
params.room_bytes: how much memory the system lets each rank take beside its program.
"""

import json
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jupiterd.cycle.training.plan import derive
from jupiterd.errors import JupiterError
from jupiterd.protocol.frames import TaskFailed
from jupiterd.protocol.preparing_stage import LOADING
from jupiterd.workers import link
from jupiterd.workers.memory_room import is_out_of_memory
from jupiterd.workers.train.loop import StepDone
from jupiterd.workers.train.rank_training import RankTraining
from jupiterd.workers.training_engine import MicroBatch, TrainingEngine
from tests.support.workers.cut.memory_limit import limit_memory
from tests.support.workers.tiny_run import SEQ_LEN, TaskAlone, tiny_shape


def engine_class(name: str, *, is_cut: bool) -> Any:
    if name == "mlx":
        from jupiterd.workers.train.mlx.mlx_engine import MlxTrainingEngine
        from jupiterd.workers.train.mlx.partition.partitioned_engine import PartitionedMlxEngine

        return PartitionedMlxEngine if is_cut else MlxTrainingEngine
    from jupiterd.workers.train.torch.partition.partitioned_engine import PartitionedTorchEngine
    from jupiterd.workers.train.torch.torch_engine import TorchEngine

    return PartitionedTorchEngine if is_cut else TorchEngine


def disturb(spec: dict[str, Any], steps: list[dict[str, float]]) -> None:
    """Let each sequence take longer, note the shares, and change a weight where that is wanted."""
    is_cut = "partition" in spec["params"]
    engine: Any = engine_class(spec["engine"], is_cut=is_cut)
    # A ring that is cut by layers accumulates nothing.
    place = "sum_gradients" if is_cut and spec["engine"] == "mlx" else "_accumulate"
    training: Any = RankTraining
    accumulate, tell = getattr(engine, place), training._step_done

    def slowly(self: Any, micro_batches: Sequence[MicroBatch], **how: Any) -> Any:
        sequences = sum(len(batch.inputs) for batch in micro_batches)
        time.sleep(sequences * spec["sequence_s"])  # noqa: TID251 - a slow machine
        steps.append({"sequences": sequences})
        return accumulate(self, micro_batches, **how)

    def noting(self: Any, done: StepDone) -> None:
        steps[-1] |= {"loss": done.loss, "computed_s": self._engine.computed_s}
        if done.step == spec["nudge_step"]:
            nudge(self._engine)
        tell(self, done)

    setattr(engine, place, slowly)
    training._step_done = noting


def nudge(engine: TrainingEngine) -> None:
    weights = {name: values.copy() for name, values in engine.weights().items()}
    weights["model.norm.weight"][0] += 1e-3
    engine.load_weights(weights)


def begin_late(task: TaskAlone, after_steps: int, steps: list[dict[str, float]]) -> None:
    """Take the checkpoint away until so many steps are done."""
    inputs = dict(task.inputs)
    state = inputs.pop("checkpoint")

    def arrived(_name: str, _wait_s: float = 0.0) -> Path | None:
        return state if len(steps) >= after_steps else None

    task.inputs, task.arrived = inputs, arrived


def break_after(engine: Any, steps: int) -> None:
    """Let the weights become no numbers after so many steps, once."""
    step, taken = engine.step, list[bool]()

    def broken(self: Any, *given: Any) -> tuple[float, float]:
        taken.append(True)
        if len(taken) == steps + 1:
            self.load_weights({name: values * np.nan for name, values in self.weights().items()})
        return step(self, *given)

    engine.step = broken


def work_for(address: str, engine: str) -> None:
    """Do what a daemon says that listens there."""
    link.PROGRESS_INTERVAL_S = -1.0
    daemon = socket.socket(socket.AF_UNIX)
    daemon.connect(address)
    task = link.Task(daemon)
    if steps := int(task.params.get("breaks_after", 0)):
        break_after(engine_class(engine, is_cut="partition" in task.params), steps)
    try:
        task.send(rank_module(engine).run(task))
    except JupiterError as error:
        task.send(TaskFailed(error.code, error.message, error.hint))


def rank_module(engine: str) -> Any:
    if engine == "mlx":
        from jupiterd.workers.train.mlx import mlx_rank

        return mlx_rank
    from jupiterd.workers.train.torch import torch_rank

    return torch_rank


def warm_up(name: str) -> None:
    """Let the program take what it takes whatever is trained: modules, threads and buffers."""
    shape = tiny_shape()
    what = shape, derive(shape, 1), 0
    if name == "mlx":
        import mlx.core as mx

        from jupiterd.workers.train.mlx.made_engine import made_engine
        from jupiterd.workers.train.mlx.ring import Ring

        engine: TrainingEngine = made_engine(*what, Ring(0, 1), None)
        mx.eval(mx.ones((512, 512)) @ mx.ones((512, 512)))  # OpenBLAS has no buffers for less
    else:
        from jupiterd.workers.train.torch.process_group import ProcessGroup
        from jupiterd.workers.train.torch.torch_engine import TorchEngine

        engine = TorchEngine(*what, ProcessGroup(0, 1), "cpu")
    engine.begin(has_same_weights=True)
    tokens = np.zeros((1, SEQ_LEN), np.int64)
    engine.step([MicroBatch(tokens, tokens)], 0.0)


class LimitedTask(TaskAlone):
    """Its process gets a limit of memory when it has met the others, and has no model yet."""

    def prepares(self, stage: str, detail: str = "", expected_s: float = 0.0) -> None:
        super().prepares(stage, detail, expected_s)
        if stage == LOADING:
            warm_up(self.params["engine"])
            limit_memory(self.params["room_bytes"][self.params["rank"]])


def run(spec: dict[str, Any]) -> None:
    if "address" in spec:
        work_for(spec["address"], spec["engine"])
        return
    folder, steps = Path(spec["folder"]), list[dict[str, float]]()
    disturb(spec, steps)
    rooms = spec["params"].get("room_bytes")
    kind = LimitedTask if rooms else TaskAlone
    task = kind("train", spec["params"], spec["inputs"], folder)
    if spec["params"]["rank"] in spec["params"].get("late_ranks", ()):
        begin_late(task, spec["params"]["arrives_after_steps"], steps)
    error = ""
    try:
        rank_module(spec["engine"]).run(task)
    except JupiterError as failed:
        error = failed.message
    except (MemoryError, RuntimeError) as failed:
        if not rooms:
            raise
        error = f"{'out of memory' if is_out_of_memory(failed) else 'others are'}: {failed}"
    (folder / "steps.json").write_text(json.dumps({"steps": steps, "error": error}))
