"""Islands of torch, each in a thread of this process, for tests of their rounds.

Owns starting one, and what it has written. Doesn't know what is expected of it.
"""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from jupiterd.cycle.training.plan import TrainPlan, derive
from jupiterd.errors import JupiterError
from jupiterd.protocol.frames import Progressed, PseudoGradientWritten, TaskFailed, TaskFinished
from jupiterd.protocol.training_values import PseudoGradient
from jupiterd.workers import link
from jupiterd.workers.islands.pseudo_gradient_file import PSEUDO_GRADIENT_FILE
from jupiterd.workers.train.torch import torch_rank
from tests.support.workers.outer_leader import WAIT_S, OuterLeader
from tests.support.workers.tiny_run import tiny_shape

EVERY, ROUNDS = 4, 4
STEPS = EVERY * ROUNDS


def plan(**changes: Any) -> TrainPlan:
    fields = {"steps": STEPS, "checkpoint_every_steps": 6, "decay_steps": 4, "learning_rate": 2e-3}
    return TrainPlan.from_plain(derive(tiny_shape(), 1).to_plain() | fields | changes)


class Island:
    """One that trains in a thread."""

    def __init__(self, leader: OuterLeader, name: str, inputs: Mapping[str, str]) -> None:
        self.leader, self.name = leader, name
        task, self.rank = leader.task(name, inputs)
        self.finished: TaskFinished | None = None
        self.error: JupiterError | None = None
        self._thread = threading.Thread(target=self._run, args=(task,), name=name, daemon=True)
        self._thread.start()

    def _run(self, task: link.Task) -> None:
        try:
            self.finished = torch_rank.run(task)
            task.send(self.finished)
        except JupiterError as error:
            self.error = error
            task.send(TaskFailed(error.code, error.message, error.hint))

    def ended(self) -> "Island":
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive()
        self.leader.wait_for(self.rank, TaskFailed if self.error else TaskFinished)
        return self

    def pseudo_gradient(self, number: int) -> bytes:
        """What it has sent in the round after that outer step."""
        return (self.rank.folder / f"way-{number:06}" / PSEUDO_GRADIENT_FILE).read_bytes()

    @property
    def losses(self) -> list[float]:
        told = [frame for frame in self.rank.said(Progressed) if "waiting" not in frame.values]
        return [frame.values["loss"] for frame in told]

    @property
    def rates(self) -> list[float]:
        told = [frame for frame in self.rank.said(Progressed) if "waiting" not in frame.values]
        return [frame.values["lr"] for frame in told]

    @property
    def pseudo_gradients(self) -> list[PseudoGradient]:
        return [frame.pseudo_gradient for frame in self.rank.said(PseudoGradientWritten)]

    def checkpoint(self, step: int) -> Path:
        return self.rank.folder / f"checkpoint-{step:08}"


def tensors(folder: Path) -> dict[str, np.ndarray]:
    state = folder / "training_state"
    return (
        load_file(folder / "model.safetensors")
        | load_file(state / "optimizer.safetensors")
        | {f"outer {name}": v for name, v in load_file(state / "outer.safetensors").items()}
    )


def same(one: Path, other: Path) -> bool:
    a, b = tensors(one), tensors(other)
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)
