"""Islands that train in rounds, as the worker's side of it: real workers, a leader of the tests.

Islands of torch run in threads of this process.
"""

import math
import shutil
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from jupiterd.cycle.plan import TrainPlan, derive
from jupiterd.errors import (
    CorruptArtifactError,
    CorruptCheckpointError,
    JupiterError,
    StateNotFetchedError,
)
from jupiterd.frames import (
    CheckpointWritten,
    KeepState,
    OuterStepWanted,
    Progressed,
    StateKept,
    TaskFailed,
    TaskFinished,
    WayWritten,
)
from jupiterd.workers import link
from jupiterd.workers.islands.island import Island as OuterIsland
from jupiterd.workers.islands.round_order import RoundOrder
from jupiterd.workers.islands.saved_island import SavedIsland
from jupiterd.workers.islands.way_file import WAY_FILE
from jupiterd.workers.train import island_rounds, torch_rank
from jupiterd.workers.train.checkpoint import load_state
from jupiterd.workers.train.engine import Tensors
from jupiterd.workers.train.torch_engine import TorchEngine
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

    def way(self, number: int) -> bytes:
        """What it has sent in the round after that outer step."""
        return (self.rank.folder / f"way-{number:06}" / WAY_FILE).read_bytes()

    @property
    def losses(self) -> list[float]:
        told = [frame for frame in self.rank.said(Progressed) if "waiting" not in frame.values]
        return [frame.values["loss"] for frame in told]

    @property
    def rates(self) -> list[float]:
        told = [frame for frame in self.rank.said(Progressed) if "waiting" not in frame.values]
        return [frame.values["lr"] for frame in told]

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


def test_islands_whose_rounds_overlap_train_on_while_the_ways_are_on_their_way(
    inputs: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    leader = OuterLeader(tmp_path, plan(), {"a": 2, "b": 3}, EVERY, lag=2)
    leader.expected = {"a", "b", "a third one, which never comes"}
    islands = [Island(leader, name, inputs) for name in ("a", "b")]
    for island in islands:
        leader.wait_for_step(island.rank, 2 * EVERY)
        assert [way.after for way in island.ways] == ["step 0"], "the second is measured later"
    leader.expected = {"a", "b"}
    leader.close_round()
    assert [island.ended().error for island in islands] == [None, None]
    log = capsys.readouterr().out
    assert digests(log, "a") == digests(log, "b")
    assert list(digests(log, "a")) == list(range(ROUNDS + 2))
    assert len(set(digests(log, "a").values())) == ROUNDS + 1, "the second step merges nothing"
    for island, batch in zip(islands, (2, 3), strict=True):
        assert [way.after for way in island.ways] == [f"step {n}" for n in range(ROUNDS)]
        assert {way.tokens for way in island.ways} == {EVERY * batch * SEQ_LEN}
        assert len(island.losses) == STEPS
        last = island.rank.said(CheckpointWritten)[-1]
        assert (last.step, last.tokens) == (STEPS, STEPS * batch * SEQ_LEN)
    a, b = (tensors(island.checkpoint(STEPS)) for island in islands)
    shared = [name for name in a if name.startswith(("model.", "outer w", "outer m"))]
    assert all(np.array_equal(a[name], b[name]) for name in shared)


def test_an_island_that_begins_again_sends_its_way_again_and_has_what_it_trained_since(
    inputs: dict[str, str], tmp_path: Path
):
    leader = OuterLeader(tmp_path, plan(), {"a": 2, "b": 3}, EVERY, lag=2)
    island = Island(leader, "b", inputs)
    leader.wait_for_step(island.rank, 6)
    leader.wait_for(island.rank, WayWritten)
    leader.stop(island.rank)
    finished = island.ended().finished
    assert finished is not None
    folder = island.checkpoint(int(finished.summary["step"]))
    state, kept = load_state(folder).outer or {}, tensors(folder)
    assert [order["number"] for order in state["orders"]] == [0, 1]
    assert state["current"]["number"] == 1
    name = "model.norm.weight"
    assert not np.array_equal(kept[f"outer base.{name}"], kept[f"outer weights.{name}"])
    leader.forget_ways()
    again = Island(leader, "b", inputs | {"checkpoint": str(folder)})
    leader.wait_for_step(again.rank, 2 * EVERY)
    leader.wait_for(again.rank, WayWritten)
    sent = [replace(way, elapsed_s=0.0, logits=b"") for way in (*island.ways, *again.ways)]
    assert (sent[0], again.way(0)) == (sent[1], island.way(0))
    other = Island(leader, "a", inputs)
    leader.wait_for_line(3)
    assert again.ended().error is None
    assert other.ended().error is None
    assert [way.after for way in again.ways] == [f"step {n}" for n in range(ROUNDS)]


def test_what_is_kept_while_a_round_begins_is_of_that_round_or_of_the_one_before(
    inputs: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    leader = OuterLeader(tmp_path, plan(), {"a": 2, "b": 3}, EVERY, lag=2)
    has_begun, is_asked, is_kept = threading.Event(), threading.Event(), threading.Event()
    begin, read = OuterIsland.begin, SavedIsland.tensors

    def begin_and_be_asked(island: OuterIsland, order: RoundOrder) -> None:
        if order.number == 1 and not is_asked.is_set():
            is_asked.set()
            leader.ranks[0].tell(KeepState(0))
            is_kept.wait(0.5)
        begin(island, order)
        if order.number == 1:
            has_begun.set()

    def read_at_that_moment(saved: SavedIsland) -> Tensors:
        found = read(saved)
        if threading.current_thread().name == "link":
            is_kept.set()
            has_begun.wait(WAIT_S)
        return found

    monkeypatch.setattr(OuterIsland, "begin", begin_and_be_asked)
    monkeypatch.setattr(SavedIsland, "tensors", read_at_that_moment)
    island = Island(leader, "b", inputs)
    leader.wait_for(island.rank, StateKept)
    (kept,) = island.rank.said(StateKept)
    folder = island.rank.folder / kept.path
    current = (load_state(folder).outer or {})["current"]["number"]
    has_base = "outer base.model.norm.weight" in tensors(folder)
    assert (current, has_base) in {(0, False), (1, True)}
    leader.stop(island.rank)
    island.ended()


def test_a_round_that_others_have_ended_is_not_gone_on_with_by_whoever_begins_again(
    inputs: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    long = plan(steps=4000, checkpoint_every_steps=4000)
    leader = OuterLeader(tmp_path, long, {"b": 2}, 2000)
    island = Island(leader, "b", inputs)
    leader.wait_for(island.rank, Progressed, 3)
    monkeypatch.setattr(island_rounds, "MOMENT_S", WAIT_S)
    leader.close_round()
    leader.wait_for(island.rank, OuterStepWanted, 3)
    leader.stop(island.rank)
    island.ended()
    (made,) = island.rank.said(CheckpointWritten)
    monkeypatch.setattr(island_rounds, "MOMENT_S", 0.2)
    again = Island(leader, "b", inputs | {"checkpoint": str(island.rank.folder / made.path)})
    leader.wait_for_step(again.rank, 2001)
    leader.stop(again.rank)
    again.ended()
    steps = [frame.done for frame in again.rank.said(Progressed) if "loss" in frame.values]
    assert steps[0] == 2001


def test_of_rounds_that_overlap_one_that_closes_without_an_island_costs_it_that_round(
    inputs: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    leader = OuterLeader(tmp_path, plan(), {"a": 2, "b": 3}, EVERY, lag=2)
    leader.expected = {"a"}
    leader.left_out = {(n, "b") for n in range(ROUNDS + 2)}
    first = Island(leader, "a", inputs).ended()
    assert first.error is None
    late = Island(leader, "b", inputs).ended()
    assert late.error is None
    log = capsys.readouterr().out
    assert digests(log, "a") == digests(log, "b")
    ends = [tensors(island.checkpoint(STEPS)) for island in (first, late)]
    assert all(np.array_equal(ends[0][n], ends[1][n]) for n in ends[0] if n.startswith("model."))


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> tuple[OuterLeader, dict[str, Island]]:
    """Return two islands that have come to their end, and who led them."""
    folder = tmp_path_factory.mktemp("before")
    inputs = make_inputs(folder)
    leader = OuterLeader(folder, plan(), {"a": 2, "b": 3}, EVERY)
    islands = {name: Island(leader, name, inputs) for name in ("a", "b")}
    for island in islands.values():
        assert island.ended().error is None
    return leader, islands


@pytest.mark.parametrize(("step", "number"), [(6, 1), (12, 3)])
def test_an_island_that_begins_again_within_a_round_does_to_the_bit_what_it_would_have_done(
    before: tuple[OuterLeader, dict[str, Island]],
    inputs: dict[str, str],
    tmp_path: Path,
    step: int,
    number: int,
):
    leader, islands = before
    start = {"checkpoint": str(islands["b"].checkpoint(step))}
    again = Island(leader.again(tmp_path, number, "b"), "b", inputs | start).ended()
    assert again.error is None
    assert len(again.losses) == STEPS - step
    assert [again.way(n) for n in range(number, ROUNDS)] == [
        islands["b"].way(n) for n in range(number, ROUNDS)
    ]
    assert same(again.checkpoint(STEPS), islands["b"].checkpoint(STEPS))
    states = [load_state(each.checkpoint(STEPS)) for each in (again, islands["b"])]
    assert states[0].tokens == states[1].tokens


def test_who_is_behind_takes_the_outer_steps_that_it_has_missed_and_goes_on_from_there(
    before: tuple[OuterLeader, dict[str, Island]],
    inputs: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
):
    leader, islands = before
    start = {"checkpoint": str(islands["b"].checkpoint(6))}
    late = Island(leader.again(tmp_path, 3, "b"), "b", inputs | start).ended()
    assert late.error is None
    assert [way.after for way in late.ways] == ["step 3"], "its round was over long ago"
    assert len(late.losses) == EVERY
    last = load_state(late.checkpoint(STEPS))
    assert (last.step, last.tokens) == (STEPS, (6 + EVERY) * 3 * SEQ_LEN), "jumps aren't trained"

    capsys.readouterr()
    later = Island(leader.again(tmp_path / "later", 4, "b"), "b", inputs | start).ended()
    assert later.finished is not None
    assert (later.finished.counts["steps"], later.finished.summary["stopped"]) == (0, False)
    ours, theirs = (tensors(each.checkpoint(STEPS)) for each in (later, islands["a"]))
    assert all(np.array_equal(ours[name], theirs[name]) for name in ours if "model." in name[:6])
    assert list(digests(capsys.readouterr().out, "b")) == [2, 3, 4]


def test_another_island_begins_where_the_round_of_the_one_began_and_waits_for_its_own_order(
    before: tuple[OuterLeader, dict[str, Island]], inputs: dict[str, str], tmp_path: Path
):
    leader, islands = before
    again = leader.again(tmp_path, 1, "c")
    again.batches = {"c": 4}
    start = {"checkpoint": str(islands["b"].checkpoint(6))}
    island = Island(again, "c", inputs | start)
    again.wait_for(island.rank, Progressed)
    again.close_round()
    assert island.ended().error is None
    first = island.rank.said(Progressed)[0]
    assert (first.done, first.values["waiting"]) == (EVERY, 1.0), "where that round began"
    assert [way.after for way in island.ways] == ["step 2", "step 3"]
    assert island.finished is not None
    assert island.finished.counts == {
        **island.finished.counts,
        "steps": 2 * EVERY,
        "tokens": 2 * EVERY * 4 * SEQ_LEN,
    }


def test_an_island_that_begins_in_the_middle_with_nothing_learned_raises_its_rate_bit_by_bit(
    before: tuple[OuterLeader, dict[str, Island]], inputs: dict[str, str], tmp_path: Path
):
    leader, _ = before
    late = Island(leader.again(tmp_path, 1, "b"), "b", inputs).ended()
    assert late.error is None
    schedule = plan().schedule()
    usual = [schedule.learning_rate(step) for step in range(EVERY, STEPS)]
    parts = [rate / each for rate, each in zip(late.rates, usual, strict=True)]
    assert parts == pytest.approx([0.25, 0.5, 0.75, *[1.0] * (STEPS - EVERY - 3)])

    assert load_state(late.checkpoint(6)).ramp == [EVERY, EVERY]
    assert not load_state(late.checkpoint(12)).ramp
    start = {"checkpoint": str(late.checkpoint(6))}
    again = Island(leader.again(tmp_path / "again", 1, "b"), "b", inputs | start).ended()
    assert again.rates == late.rates[2:]
    assert same(again.checkpoint(STEPS), late.checkpoint(STEPS))


def test_a_way_that_does_not_count_costs_its_island_the_round_and_nothing_else(
    inputs: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    leader = OuterLeader(tmp_path, plan(checkpoint_every_steps=5), {"a": 2, "b": 3}, EVERY)
    leader.left_out = {(2, "b")}
    islands = [Island(leader, name, inputs) for name in ("a", "b")]
    assert [island.ended().error for island in islands] == [None, None]
    log = capsys.readouterr().out
    assert digests(log, "a") == digests(log, "b")
    residuals = [
        [tensors(island.checkpoint(step))["outer residual.model.norm.weight"] for step in (5, 10)]
        for island in islands
    ]
    assert not np.array_equal(*residuals[0])
    assert np.array_equal(*residuals[1]), "of the way that was dropped, nothing is left"


def test_after_every_fourth_outer_step_without_a_checkpoint_there_is_one(
    inputs: dict[str, str], tmp_path: Path
):
    rarely = plan(steps=12, checkpoint_every_steps=5)
    leader = OuterLeader(tmp_path, rarely, {"a": 2}, 1)
    island = Island(leader, "a", inputs).ended()
    made = [told.step for told in island.rank.said(CheckpointWritten)]
    assert made == [4, 5, 9, 10, 12]
    places = [load_state(island.checkpoint(step)).outer or {} for step in made]
    assert [[order["number"] for order in place["orders"]] for place in places] == [
        [number] for number in made
    ]


def test_a_round_that_the_others_have_ended_is_left_at_once(inputs: dict[str, str], tmp_path: Path):
    long = plan(steps=4000, checkpoint_every_steps=4000)
    leader = OuterLeader(tmp_path, long, {"b": 2}, 2000)
    island = Island(leader, "b", inputs)
    leader.wait_for(island.rank, Progressed, 3)
    leader.close_round()
    leader.wait_for(island.rank, OuterStepWanted, 3)
    told = len(island.rank.said(Progressed))
    leader.wait_for(island.rank, Progressed, told + 2)
    leader.stop(island.rank)
    assert island.ended().finished is not None
    steps = [frame.done for frame in island.rank.said(Progressed) if "loss" in frame.values]
    left = next(n for n, step in enumerate(steps) if step > 2000)
    assert steps[:left] == list(range(1, left + 1))
    assert steps[left:] == list(range(2001, 2001 + len(steps) - left))
    assert not island.ways


def test_a_rank_that_is_told_to_stop_while_it_waits_keeps_its_round(
    inputs: dict[str, str], tmp_path: Path
):
    leader = OuterLeader(tmp_path, plan(), {"a": 2, "b": 3}, EVERY)
    island = Island(leader, "b", inputs)
    leader.wait_for(island.rank, WayWritten)
    leader.stop(island.rank)
    finished = island.ended().finished
    assert finished is not None
    assert (finished.summary["stopped"], finished.summary["step"]) == (True, EVERY)
    (made,) = island.rank.said(CheckpointWritten)
    start = {"checkpoint": str(island.rank.folder / made.path)}
    again = Island(leader, "b", inputs | start)
    leader.wait_for(again.rank, WayWritten)
    leader.stop(again.rank)
    assert not again.ended().losses
    assert again.way(0) == island.way(0), "it sends the same once more"


def test_before_all_have_met_after_the_last_step_nothing_is_kept_that_would_look_final(
    inputs: dict[str, str], tmp_path: Path
):
    short = plan(steps=EVERY, checkpoint_every_steps=EVERY // 2)
    leader = OuterLeader(tmp_path, short, {"a": 2, "b": 3}, EVERY)
    island = Island(leader, "b", inputs)
    leader.wait_for(island.rank, WayWritten)
    island.rank.tell(KeepState(0))
    leader.wait_for(island.rank, StateKept)
    leader.stop(island.rank)
    finished = island.ended().finished
    assert finished is not None
    assert finished.summary["stopped"] is True
    assert island.rank.said(StateKept) == [StateKept()]
    assert [made.step for made in island.rank.said(CheckpointWritten)] == [EVERY // 2]


@pytest.mark.parametrize(("at_step", "tokens"), [(6, SEQ_LEN), (8, EVERY * SEQ_LEN)])
def test_an_island_whose_weights_are_no_numbers_is_left_out_and_goes_on_with_those_of_all(
    at_step: int,
    tokens: int,
    inputs: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    step, taken = TorchEngine.step, dict[str, int]()

    def broken(engine: TorchEngine, *args: Any) -> tuple[float, float]:
        """Break the weights before a step within the round, or after the round's last one."""
        name = threading.current_thread().name
        taken[name] = taken.get(name, 0) + 1
        is_now, is_last = (name, taken[name]) == ("b", at_step), at_step % EVERY == 0
        if is_now and not is_last:
            _break(engine)
        result = step(engine, *args)
        if is_now and is_last:
            _break(engine)
        return result

    monkeypatch.setattr(TorchEngine, "step", broken)
    leader = OuterLeader(tmp_path, plan(), {"a": 2, "b": 3}, EVERY)
    islands = [Island(leader, name, inputs) for name in ("a", "b")]
    assert [island.ended().error for island in islands] == [None, None]
    log = capsys.readouterr().out
    assert digests(log, "a") == digests(log, "b")
    assert [math.isfinite(way.norm) for way in islands[1].ways] == [True, False, True, True]
    assert islands[1].ways[1].tokens == 3 * tokens
    assert list(leader.line[2].ways) == ["a"]


def _break(engine: TorchEngine) -> None:
    engine.load_weights({name: values * np.nan for name, values in engine.weights().items()})
    moments = engine.moments()
    engine.load_moments({name: values * np.nan for name, values in moments.items()}, 1)


def test_a_damaged_way_ends_the_rank_and_says_so(inputs: dict[str, str], tmp_path: Path):
    leader = OuterLeader(tmp_path, plan(), {"a": 2, "b": 3}, EVERY)
    island = Island(leader, "a", inputs)
    leader.wait_for(island.rank, WayWritten)
    path = island.rank.folder / "way-000000" / WAY_FILE
    path.write_bytes(path.read_bytes()[:-100])
    leader.close_round()
    assert isinstance(island.ended().error, CorruptArtifactError)


@pytest.mark.parametrize("how", ["cut short", "missing", "of another model", "no order"])
def test_an_outer_state_that_is_damaged_ends_the_rank_at_once(
    before: tuple[OuterLeader, dict[str, Island]], inputs: dict[str, str], tmp_path: Path, how: str
):
    leader, islands = before
    damaged = tmp_path / "damaged"
    shutil.copytree(islands["b"].checkpoint(6), damaged)
    file, state = (
        damaged / "training_state" / name for name in ("outer.safetensors", "state.json")
    )
    match how:
        case "cut short":
            file.write_bytes(file.read_bytes()[:-9])
        case "missing":
            file.unlink()
        case "of another model":
            save_file({n: v for n, v in load_file(file).items() if "norm" not in n}, file)
        case _:
            state.write_text(state.read_text().replace('"number": 1', '"number": "one"'))
    again = Island(leader.again(tmp_path, 1, "b"), "b", inputs | {"checkpoint": str(damaged)})
    assert isinstance(again.ended().error, CorruptCheckpointError)


def test_who_is_on_a_line_that_counts_no_more_is_told_why_it_ends(
    inputs: dict[str, str], tmp_path: Path
):
    leader = OuterLeader(tmp_path, plan(), {"a": 2}, EVERY)
    leader.refuses_after = "step 1"
    error = Island(leader, "a", inputs).ended().error
    assert isinstance(error, StateNotFetchedError)
    assert error.message == "its line counts no more"
