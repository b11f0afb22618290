"""A rank that begins without the state: it catches up, and nothing of what is learned is changed.

What the ranks hold is compared bit by bit by their own check of the weights, once all are there.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from jupiterd.cluster.training.gang_watchdog import LEAST_STEP_S
from jupiterd.daemon.gangs import surviving_states
from jupiterd.errors import StateNotFetchedError
from jupiterd.workers.train import catch_up_rank
from jupiterd.workers.train.catch_up_rank import MOST_STEPS, CatchUpRank
from jupiterd.workers.training_engine import Gradients, TrainingEngine
from tests.support.workers.gangs import Gangs, plan_of
from tests.unit.workers.train.held_out.test_held_out_monitor import STRANGE
from tests.unit.workers.train.test_given_weights import held

BEGUN, STEPS = 10, 40


@pytest.mark.full
@pytest.mark.net
@pytest.mark.timeout(150)
@pytest.mark.xdist_group("gangs")
@pytest.mark.parametrize(
    ("engine", "missed"),
    [
        ("torch", 7),
        ("mlx", 0),
        pytest.param("torch", 0, marks=pytest.mark.long),
        pytest.param("mlx", 7, marks=pytest.mark.long),
    ],
)
def test_a_rank_whose_state_comes_later_changes_nothing(
    gangs: Gangs, engine: str, missed: int, tmp_path: Path
) -> None:
    folders = [tmp_path / name for name in ("before", "two", "one")]
    for folder in folders:
        folder.mkdir()
    gangs.trained(folders[0], engine, STEPS, (0.0,), (4,), more_params=every(BEGUN))
    held_out = held(tmp_path / "held", STRANGE)
    checkpoint = str(folders[0] / "0" / f"checkpoint-{BEGUN:08}")
    state = held_out | {"checkpoint": checkpoint}
    late = {"late_ranks": [1], "from_step": BEGUN, "from_checkpoint": "it", "is_tuning": True}
    early, newcomer = gangs.trained(
        folders[1], engine, STEPS, (0.01, 0.01), (4, 4), more_inputs=state,
        more_params=every(BEGUN) | late | {"arrives_after_steps": missed},
    )  # fmt: skip
    (alone,) = gangs.trained(
        folders[2], engine, STEPS, (0.0,), (4,), more_inputs=state, more_params=every(BEGUN)
    )
    assert (early["error"], newcomer["error"], alone["error"]) == ("", "", "")

    losses = [[step["loss"] for step in told["steps"]] for told in (early, newcomer, alone)]
    assert losses[0] == pytest.approx(losses[1], abs=1e-6), "ranks see the same loss"
    assert losses[0] == pytest.approx(losses[2], abs=1e-4), "the loss of one machine"

    taken = [step["sequences"] for step in early["steps"]]
    assert set(taken[: missed + 1]) == {16}, "until it is there, the other one takes all"
    assert max(taken[missed + 1 :]) < 16, "and then it takes its share"
    log = (folders[1] / "1" / "log").read_text()
    assert f"{missed} missed steps" in log
    assert "Sync=OK" in log


def every(steps: int) -> dict[str, Any]:
    """Return a plan that writes a checkpoint every so many steps."""
    plan = plan_of(STEPS).model_copy(update={"checkpoint_every_steps": steps})
    return {"plan": plan.to_plain()}


class Counting:
    """As much of an engine as a late rank asks for; its one weight is the sum of its steps."""

    def __init__(self, bytes_held: int = 4) -> None:
        self.weight, self.held = 0.0, 1.0
        self.size = bytes_held // 4

    def weights(self) -> dict[str, Any]:
        return {"w": self}

    def sum_gradients(self, _batch: Sequence[Any], *, counts: bool = True) -> float:
        assert not counts
        self.held = 1.0
        return 0.0

    def take_step(self, learning_rate: float) -> float:
        self.weight += self.held * learning_rate
        return self.held

    def take_gradients(self) -> Gradients:
        return {"w": self.held}

    def put_gradients(self, gradients: Gradients) -> None:
        self.held = gradients["w"]


class Post:
    """Where the state comes in, after it was asked for so many times."""

    def __init__(self, comes_after: float) -> None:
        self.comes_after, self.asked = comes_after, 0
        self.waited_s: list[float] = []

    def arrived(self, _name: str, wait_s: float = 0.0) -> Path | None:
        self.asked += 1
        self.waited_s.append(wait_s)
        return Path("state") if self.asked > self.comes_after else None


def late(engine: Counting, post: Post, load: Callable[[Path], None]) -> CatchUpRank:
    return CatchUpRank(cast("TrainingEngine", engine), post, load, is_late=True)


def test_the_steps_that_were_missed_are_taken_once_with_their_own_rates() -> None:
    engine, post = Counting(), Post(comes_after=3)

    def load(_folder: Path) -> None:
        engine.weight = 100.0

    rank = late(engine, post, load)
    for step in range(3):
        assert rank.step([], 10.0**step) == (0.0, 0.0)
        assert not rank.is_here
    assert engine.weight == 0.0
    rank.step([], 1000.0)
    assert rank.is_here
    assert engine.weight == 100.0 + 1 + 10 + 100 + 1000
    rank.step([], 0.5)
    assert (engine.weight, post.asked) == (1211.5, 4)


def test_a_state_that_never_comes_is_waited_for_in_the_end_and_given_up() -> None:
    post = Post(comes_after=float("inf"))
    rank = late(Counting(), post, lambda _: None)
    for _ in range(MOST_STEPS):
        rank.step([], 1.0)
    assert set(post.waited_s) == {0.0}, "nobody waits for it as long as there is room"
    with pytest.raises(StateNotFetchedError, match="hasn't come after 200 steps"):
        rank.step([], 1.0)
    assert post.waited_s[-1] > 0


@pytest.mark.parametrize(("free_bytes", "kept"), [(1 << 40, 2), (1 << 34, 1), (1 << 30, 0)])
def test_of_a_large_model_or_where_memory_is_scarce_fewer_steps_are_kept(
    monkeypatch: pytest.MonkeyPatch, free_bytes: int, kept: int
) -> None:
    monkeypatch.setattr(catch_up_rank, "free_memory_bytes", lambda: free_bytes)
    rank = late(Counting(bytes_held=2 << 30), Post(comes_after=float("inf")), lambda _: None)
    for _ in range(kept):
        rank.step([], 1.0)
    with pytest.raises(StateNotFetchedError, match=f"after {kept} steps"):
        rank.step([], 1.0)


def test_nobody_waits_for_a_state_until_the_step_is_taken_for_one_that_hangs() -> None:
    """As long as a rank hasn't got it, all of them say after each step that they are busy."""
    assert LEAST_STEP_S + surviving_states.LEAST_S - 2.0 > catch_up_rank.WAIT_S
