"""Islands that train in rounds, as the worker's side of it: real workers, a leader of the tests.

Islands of torch run in threads of this process.
"""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from jupiterd.cycle.plan import TrainPlan, derive
from jupiterd.errors import JupiterError
from jupiterd.frames import (
    CheckpointWritten,
    Progressed,
    TaskFinished,
    WayWritten,
)
from jupiterd.workers import link
from jupiterd.workers.train import island_rounds, torch_rank
from tests.unit.workers.outer_leader import WAIT_S, OuterLeader, digests
from tests.unit.workers.tiny_run import SEQ_LEN, make_inputs, tiny_shape

EVERY, ROUNDS = 4, 4
STEPS = EVERY * ROUNDS


@pytest.fixture(autouse=True)
def _every_step_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "PROGRESS_INTERVAL_S", -1.0)
    monkeypatch.setattr(island_rounds, "MOMENT_S", 0.2)


@pytest.fixture
def inputs(tmp_path: Path) -> dict[str, str]:
    return make_inputs(tmp_path)


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
        self._thread = threading.Thread(target=self._run, args=(task,), daemon=True)
        self._thread.start()

    def _run(self, task: link.Task) -> None:
        try:
            self.finished = torch_rank.run(task)
        except JupiterError as error:
            self.error = error

    def ended(self) -> "Island":
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive()
        return self

    @property
    def losses(self) -> list[float]:
        told = [frame for frame in self.rank.said(Progressed) if "waiting" not in frame.values]
        return [frame.values["loss"] for frame in told]

    @property
    def ways(self) -> list[WayWritten]:
        return self.rank.said(WayWritten)

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


def test_islands_of_unlike_batches_end_every_round_with_the_same_weights(
    inputs: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    leader = OuterLeader(tmp_path, plan(), {"a": 2, "b": 3}, EVERY)
    islands = [Island(leader, name, inputs) for name in ("a", "b")]
    for island in islands:
        assert island.ended().error is None
    log = capsys.readouterr().out
    assert digests(log, "a") == digests(log, "b")
    assert list(digests(log, "a")) == list(range(ROUNDS + 1))
    assert len(set(digests(log, "a").values())) == ROUNDS + 1
    for island, batch in zip(islands, (2, 3), strict=True):
        ways = island.ways
        assert [way.after for way in ways] == [f"step {n}" for n in range(ROUNDS)]
        assert {way.tokens for way in ways} == {EVERY * batch * SEQ_LEN}
        assert all(0 < way.norm < 10 and way.elapsed_s > 0 for way in ways)
        last = island.rank.said(CheckpointWritten)[-1]
        assert (last.step, last.tokens) == (STEPS, STEPS * batch * SEQ_LEN)
        assert island.finished is not None
        assert island.finished.counts["tokens"] == last.tokens
        assert island.finished.summary["stopped"] is False
        assert {frame.values["outer_step"] for frame in island.rank.said(Progressed)} == {
            0,
            1,
            2,
            3,
        }
    a, b = (tensors(island.checkpoint(STEPS)) for island in islands)
    shared = [name for name in a if name.startswith(("model.", "outer w", "outer m"))]
    assert all(np.array_equal(a[name], b[name]) for name in shared)
    own = [name for name in a if name.startswith(("exp_avg", "outer residual"))]
    assert not all(np.array_equal(a[name], b[name]) for name in own), "moments are each one's own"
