"""Trains on MLX in a process of its own: `python -m tests.support.workers.mlx_run SPEC.json`.

The file lists runs, done one after another: {name, params, inputs, folder}. What each run said is
written to FOLDER/NAME.json as it comes to its end; every step is told, none left out.
"""

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jupiterd.errors import JupiterError
from jupiterd.protocol.frames import Progressed
from jupiterd.workers import link
from jupiterd.workers.train.mlx import mlx_rank
from tests.support.workers.tiny_run import TaskAlone


class TellingTask(TaskAlone):
    """Also prints each step, for whoever waits for one."""

    def send(self, frame: Any) -> None:
        super().send(frame)
        if isinstance(frame, Progressed):
            print(frame.done, frame.values.get("loss"), flush=True)


def train(name: str, params: dict[str, Any], inputs: dict[str, str], folder: str) -> None:
    task = TellingTask("train_mlx", params, inputs, Path(folder) / name)
    said: dict[str, Any] = {}
    try:
        finished = mlx_rank.run(task)
        said = {"summary": finished.summary, "counts": finished.counts}
    except JupiterError as error:
        said = {"error": error.message}
    said["frames"] = [{"type": type(frame).__name__, **asdict(frame)} for frame in task.frames]
    (Path(folder) / f"{name}.json").write_text(json.dumps(said))


if __name__ == "__main__":
    link.PROGRESS_INTERVAL_S = -1.0
    for run in json.loads(Path(sys.argv[1]).read_text()):
        train(**run)
    sys.stdout.flush()
    os._exit(0)  # as a worker does
