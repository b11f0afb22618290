"""The one entry point of worker processes: `python -m jupiterd.workers`.

Owns the table of tasks, and how an exception becomes a frame. Doesn't know what any task does.
"""

import importlib
import os
import sys
import traceback

from jupiterd.errors import (
    DiskFullError,
    JupiterError,
    MissingExtraError,
    NotFoundError,
    OutOfMemoryError,
    WorkFailedError,
)
from jupiterd.gc_pause import collector_paused
from jupiterd.protocol.frames import RankStuck, TaskFailed
from jupiterd.protocol.preparing_stage import IMPORTING, LOADING
from jupiterd.workers import thread_share
from jupiterd.workers.disk_room import is_out_of_room
from jupiterd.workers.link import Task, open_task
from jupiterd.workers.memory_room import is_out_of_memory

TASKS = {
    "collect": "jupiterd.workers.data.collect.collect_source",
    "clean": "jupiterd.workers.data.clean.clean_batch",
    "hold_out": "jupiterd.workers.data.pack.hold_out",
    "unite": "jupiterd.workers.data.dedup.merge_batches",
    "pack": "jupiterd.workers.data.pack.pack_shards",
    "prepare": "jupiterd.workers.data.pack.prepare_dataset",
    "train": "jupiterd.workers.train.torch.torch_rank",
    "train_mlx": "jupiterd.workers.train.mlx.mlx_rank",
    "draw_weights": "jupiterd.workers.train.draw_weights",
    "check_sync": "jupiterd.workers.train.allreduce_check",
    "generate": "jupiterd.workers.generate.samples",
    "try_generator": "jupiterd.workers.generate.generator_trial",
    "prompt": "jupiterd.workers.generate.prompt",
    "evaluate": "jupiterd.workers.answers.evaluation",
    "grade_questions": "jupiterd.workers.answers.question_grading",
    "find_tasks": "jupiterd.workers.harness.find_tasks",
    "grade_tasks": "jupiterd.workers.harness.grade_tasks",
    "answer_requests": "jupiterd.workers.harness.answer_requests",
    "score_texts": "jupiterd.workers.evaluate.score_texts",
    "evaluate_held_out": "jupiterd.workers.evaluate.held_out",
    "gate": "jupiterd.workers.evaluate.gate_verdict",
    "choose_proxy_text": "jupiterd.workers.proxies.text",
    "pack_arm": "jupiterd.workers.proxies.arm",
    "train_proxy": "jupiterd.workers.proxies.student",
    "write_pairs": "jupiterd.workers.judge.write_pairs",
    "ask_judge": "jupiterd.workers.judge.ask_judge",
}
"""Name of a task -> the module whose `run(task) -> TaskFinished` does it."""

LOADS_MODEL = frozenset({"generate", "evaluate", "evaluate_held_out"})
"""Tasks that load a model before they have anything to count, and say so."""

SAYS_STAGES = LOADS_MODEL | {"train", "train_mlx"}
"""Tasks that say what they do before their first step or document."""

EXTRAS = frozenset({"torch", "mlx", "mlx_lm", "transformers", "tokenizers", "safetensors", "numpy"})


def translate(error: Exception, task: str) -> JupiterError:
    """Turn any exception into one line and a hint."""
    if isinstance(error, JupiterError):
        return error
    if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] in EXTRAS:
        return MissingExtraError(f"the {task} worker needs {error.name}, which isn't installed")
    if is_out_of_memory(error):
        return OutOfMemoryError(f"the {task} worker ran out of memory: {error}")
    if is_out_of_room(error):
        return DiskFullError(f"the disk filled up while the {task} worker was writing")
    return WorkFailedError(f"the {task} worker failed: {type(error).__name__}: {error}")


def module_of(task: str) -> str:
    """Return the module of a task; a leader of another version may order one that isn't here.

    Raises:
        NotFoundError: that doesn't count as a failure: it passes once the leader is upgraded.
    """
    if task not in TASKS:
        raise NotFoundError(
            f"this program knows no task {task}, which a leader of another version has ordered",
            "upgrade jupiterd on all machines; the work goes on by itself",
        )
    return TASKS[task]


def main() -> int:
    """Do one task and say how it ended."""
    task: Task = open_task()
    thread_share.begin(task.threads)
    try:
        if task.name in SAYS_STAGES:
            task.prepares(IMPORTING)
        with collector_paused():
            worker = importlib.import_module(module_of(task.name))
        if task.name in LOADS_MODEL:
            task.prepares(LOADING)
        finished = worker.run(task)
    except Exception as error:  # noqa: BLE001 - the border of the process: everything becomes a frame
        traceback.print_exc()
        known = translate(error, task.name)
        if task.lingers:
            task.linger(RankStuck(known.code, known.message, known.hint))
        task.send(TaskFailed(known.code, known.message, known.hint))
        return 1
    task.send(finished)
    return 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Everything has been said and written. The orderly way out would destroy libraries' native
    # threads one by one, and some (gloo's among them) then wait for Python, which waits for them.
    os._exit(status)
