"""Islands that train in rounds, as the worker's side of it: real workers, a leader of the tests.

Islands of torch run in threads of this process.
"""

import errno
import math
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from jupiterd.errors import (
    CorruptArtifactError,
    CorruptCheckpointError,
    IslandLeftOutError,
    StateNotFetchedError,
)
from jupiterd.protocol.frames import (
    CheckpointUnsaved,
    CheckpointWritten,
    OuterStepWanted,
    Progressed,
    PseudoGradientWritten,
    SaveState,
    StateSaved,
)
from jupiterd.workers import link
from jupiterd.workers.islands.pseudo_gradient_file import PSEUDO_GRADIENT_FILE
from jupiterd.workers.train.checkpoints import checkpoint_saver
from jupiterd.workers.train.checkpoints.checkpoint import TrainingSnapshot, load_state, write
from jupiterd.workers.train.island import outer_rounds
from jupiterd.workers.train.island.outer_rounds import OuterRounds
from jupiterd.workers.train.torch.torch_engine import TorchEngine
from tests.support.workers.drifted_island import drift
from tests.support.workers.island_threads import (
    EVERY,
    ROUNDS,
    STEPS,
    Island,
    plan,
    same,
    tensors,
)
from tests.support.workers.outer_leader import DIGEST_BYTES, OuterLeader, digests
from tests.support.workers.tiny_run import SEQ_LEN, make_inputs


@pytest.fixture(autouse=True)
def _every_step_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "PROGRESS_INTERVAL_S", -1.0)
    monkeypatch.setattr(outer_rounds, "MOMENT_S", 0.2)
    monkeypatch.setattr(outer_rounds, "SAVE_AFTER_S", 0.0)


@pytest.fixture
def inputs(tmp_path: Path) -> dict[str, str]:
    return make_inputs(tmp_path)


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
        pseudo_gradients = island.pseudo_gradients
        assert [pseudo_gradient.after for pseudo_gradient in pseudo_gradients] == [
            f"step {n}" for n in range(ROUNDS)
        ]
        assert {pseudo_gradient.tokens for pseudo_gradient in pseudo_gradients} == {
            EVERY * batch * SEQ_LEN
        }
        assert all(
            0 < pseudo_gradient.norm < 10 and pseudo_gradient.elapsed_s > 0
            for pseudo_gradient in pseudo_gradients
        )
        stand = [(f"step {n}", digests(log, "a")[n]) for n in range(ROUNDS)]
        assert [
            (pseudo_gradient.stands_at, pseudo_gradient.digest.hex())
            for pseudo_gradient in pseudo_gradients
        ] == stand
        last = island.rank.said(CheckpointWritten)[-1].progress
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


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> tuple[OuterLeader, dict[str, Island]]:
    """Return two islands that have come to their end, and who led them."""
    folder = tmp_path_factory.mktemp("before")
    inputs = make_inputs(folder)
    leader = OuterLeader(folder, plan(), {"a": 2, "b": 3}, EVERY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outer_rounds, "SAVE_AFTER_S", 0.0)
        islands = {name: Island(leader, name, inputs) for name in ("a", "b")}
        for island in islands.values():
            assert island.ended().error is None
    return leader, islands


@pytest.mark.full
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
    assert [again.pseudo_gradient(n) for n in range(number, ROUNDS)] == [
        islands["b"].pseudo_gradient(n) for n in range(number, ROUNDS)
    ]
    assert digests_told(again) == digests_told(islands["b"])[number:]
    assert same(again.checkpoint(STEPS), islands["b"].checkpoint(STEPS))
    states = [load_state(each.checkpoint(STEPS)) for each in (again, islands["b"])]
    assert states[0].tokens == states[1].tokens


def digests_told(island: Island) -> list[tuple[str, bytes]]:
    assert all(
        len(pseudo_gradient.digest) == DIGEST_BYTES for pseudo_gradient in island.pseudo_gradients
    )
    return [
        (pseudo_gradient.stands_at, pseudo_gradient.digest)
        for pseudo_gradient in island.pseudo_gradients
    ]


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
    assert [pseudo_gradient.after for pseudo_gradient in late.pseudo_gradients] == ["step 3"], (
        "its round was over long ago"
    )
    assert digests_told(late) == digests_told(islands["a"])[3:]
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
    assert [pseudo_gradient.after for pseudo_gradient in island.pseudo_gradients] == [
        "step 2",
        "step 3",
    ]
    assert digests_told(island)[0] == digests_told(islands["b"])[2], "it has what the others have"
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
    made = [told.progress.step for told in island.rank.said(CheckpointWritten)]
    assert made == [4, 5, 9, 10, 12]
    places = [load_state(island.checkpoint(step)).outer or {} for step in made]
    assert [[order["number"] for order in place["orders"]] for place in places] == [
        [number] for number in made
    ]


def test_few_and_quick_steps_between_outer_steps_are_not_all_written_down(
    inputs: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(outer_rounds, "SAVE_AFTER_S", 30.0)
    leader = OuterLeader(tmp_path, plan(steps=12, checkpoint_every_steps=2), {"a": 2}, 1)
    island = Island(leader, "a", inputs).ended()
    made = [told.progress.step for told in island.rank.said(CheckpointWritten)]
    assert made == [2, 6, 10, 12], "the first one, each fourth round's, and the last one"


def test_a_checkpoint_that_was_due_too_soon_is_written_as_soon_as_may_be(
    inputs: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    usual = OuterRounds._may_save.fget
    assert usual is not None
    may_save = property(lambda rounds: rounds.step > 6 and usual(rounds))
    monkeypatch.setattr(OuterRounds, "_may_save", may_save)
    leader = OuterLeader(tmp_path, plan(checkpoint_every_steps=5), {"a": 2}, EVERY)
    island = Island(leader, "a", inputs).ended()
    assert [told.progress.step for told in island.rank.said(CheckpointWritten)] == [7, 10, 15, 16]


def test_after_a_checkpoint_without_room_the_next_one_that_is_due_is_tried(
    inputs: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(outer_rounds, "SAVE_AFTER_S", 30.0)
    monkeypatch.setattr(outer_rounds, "SAVE_AFTER_ROUNDS", 100)
    full = iter([True, True, False])

    def write_if_room(taken: TrainingSnapshot, *rest: Path) -> None:
        if next(full, False):
            raise OSError(errno.ENOSPC, "no room")
        write(taken, *rest)

    monkeypatch.setattr(checkpoint_saver, "write", write_if_room)
    leader = OuterLeader(tmp_path, plan(checkpoint_every_steps=5), {"a": 2}, 16)
    island = Island(leader, "a", inputs).ended()
    assert [told.step for told in island.rank.said(CheckpointUnsaved)] == [5, 10]
    assert [told.progress.step for told in island.rank.said(CheckpointWritten)] == [15, 16]


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
    assert not island.pseudo_gradients


def test_a_rank_that_is_told_to_stop_while_it_waits_keeps_its_round(
    inputs: dict[str, str], tmp_path: Path
):
    leader = OuterLeader(tmp_path, plan(), {"a": 2, "b": 3}, EVERY)
    island = Island(leader, "b", inputs)
    leader.wait_for(island.rank, PseudoGradientWritten)
    leader.stop(island.rank)
    finished = island.ended().finished
    assert finished is not None
    assert (finished.summary["stopped"], finished.summary["step"]) == (True, EVERY)
    (made,) = island.rank.said(CheckpointWritten)
    start = {"checkpoint": str(island.rank.folder / made.path)}
    again = Island(leader, "b", inputs | start)
    leader.wait_for(again.rank, PseudoGradientWritten)
    leader.stop(again.rank)
    assert not again.ended().losses
    assert again.pseudo_gradient(0) == island.pseudo_gradient(0), "it sends the same once more"
    assert digests_told(again) == digests_told(island)


def test_before_all_have_met_after_the_last_step_nothing_is_kept_that_would_look_final(
    inputs: dict[str, str], tmp_path: Path
):
    short = plan(steps=EVERY, checkpoint_every_steps=EVERY // 2)
    leader = OuterLeader(tmp_path, short, {"a": 2, "b": 3}, EVERY)
    island = Island(leader, "b", inputs)
    leader.wait_for(island.rank, PseudoGradientWritten)
    island.rank.tell(SaveState(0))
    leader.wait_for(island.rank, StateSaved)
    leader.stop(island.rank)
    finished = island.ended().finished
    assert finished is not None
    assert finished.summary["stopped"] is True
    assert island.rank.said(StateSaved) == [StateSaved()]
    assert [made.progress.step for made in island.rank.said(CheckpointWritten)] == [EVERY // 2]


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
    assert [
        math.isfinite(pseudo_gradient.norm) for pseudo_gradient in islands[1].pseudo_gradients
    ] == [True, False, True, True]
    assert digests_told(islands[0]) == digests_told(islands[1]), "what all have is sound"
    assert islands[1].pseudo_gradients[1].tokens == 3 * tokens
    assert list(leader.line[2].pseudo_gradients) == ["a"]


@pytest.mark.parametrize("what", ["weights", "momentum"])
def test_an_island_that_has_drifted_by_one_bit_is_left_out_for_as_long_as_it_goes_on_with_it(
    what: str, inputs: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    drift(monkeypatch, "c", 1, what)
    leader = OuterLeader(tmp_path, plan(), {"a": 2, "b": 2, "c": 1}, EVERY)
    islands = [Island(leader, name, inputs) for name in ("a", "b", "c")]
    assert [island.ended().error for island in islands] == [None] * 3
    assert leader.adrift == [(number, "c") for number in range(2, ROUNDS + 1)]
    assert [[*step.pseudo_gradients] for step in leader.line[1:]] == [
        ["a", "b", "c"],
        *[["a", "b"]] * 3,
    ]


def test_an_island_that_has_drifted_by_one_bit_has_what_all_have_once_it_goes_on_from_anothers(
    inputs: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    drift(monkeypatch, "c", 1, "weights", ends_at=2)
    leader = OuterLeader(tmp_path, plan(), {"a": 2, "b": 2, "c": 1}, EVERY)
    islands = {name: Island(leader, name, inputs) for name in ("a", "b", "c")}
    assert isinstance(islands["c"].ended().error, IslandLeftOutError)
    assert leader.adrift == [(2, "c")], "in the round that it begins with them"
    leader.wait_for(islands["a"].rank, CheckpointWritten)
    start = {"checkpoint": str(islands["a"].checkpoint(6))}
    again = Island(leader, "c", inputs | start)
    for island in (again, islands["a"], islands["b"]):
        assert island.ended().error is None
    assert leader.adrift == [(2, "c")]
    assert [*leader.line[3].pseudo_gradients] == ["a", "b", "c"], "its next way counts"
    log = capsys.readouterr().out
    ours, theirs = digests(log, "c"), digests(log, "a")
    assert [number for number in theirs if ours[number] != theirs[number]] == [1]
    ends = [tensors(island.checkpoint(STEPS)) for island in (again, islands["a"])]
    shared = [name for name in ends[0] if name.startswith(("model.", "outer w", "outer m"))]
    assert all(np.array_equal(ends[0][name], ends[1][name]) for name in shared)


def _break(engine: TorchEngine) -> None:
    engine.load_weights({name: values * np.nan for name, values in engine.weights().items()})
    moments = engine.moments()
    engine.load_moments({name: values * np.nan for name, values in moments.items()}, 1)


def test_a_damaged_way_ends_the_rank_and_says_so(inputs: dict[str, str], tmp_path: Path):
    leader = OuterLeader(tmp_path, plan(), {"a": 2, "b": 3}, EVERY)
    island = Island(leader, "a", inputs)
    leader.wait_for(island.rank, PseudoGradientWritten)
    path = island.rank.folder / "way-000000" / PSEUDO_GRADIENT_FILE
    path.write_bytes(path.read_bytes()[:-100])
    leader.close_round()
    assert isinstance(island.ended().error, CorruptArtifactError)


@pytest.mark.parametrize("how", ["cut short", "missing", "of another model", "no order"])
def test_an_outer_state_that_is_damaged_ends_the_rank_at_once(
    before: tuple[OuterLeader, dict[str, Island]],
    inputs: dict[str, str],
    tmp_path: Path,
    how: str,
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
