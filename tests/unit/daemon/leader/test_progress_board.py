"""How far the running phase is."""

from typing import Any

import pytest

from jupiterd.cycle.base.work_item import Phase
from jupiterd.daemon.leader.progress_board import PhaseProgress, ProgressBoard
from jupiterd.ids import CycleId
from jupiterd.protocol.frames import Preparing, Progressed

CYCLE = CycleId("c" * 16)
OTHER = CycleId("d" * 16)


@pytest.fixture
def board() -> ProgressBoard:
    board = ProgressBoard()
    board.begin(CYCLE, 1, Phase.EVALUATE, 100.0)
    return board


def shown(board: ProgressBoard, now_s: float) -> dict[str, Any]:
    (plain,) = board.to_plain(now_s)
    return plain


def test_items_of_a_phase_add_up(board: ProgressBoard) -> None:
    for item, done in (("r1/evaluate/0", 3), ("r1/evaluate/1", 1), ("r1/evaluate/0", 4)):
        board.advance(CYCLE, item, Progressed(done, 10, "documents", {}), 105.0)
    plain = shown(board, 110.0)
    assert (plain["done"], plain["total"], plain["unit"]) == (5, 20, "documents")
    assert plain["elapsed_s"] == pytest.approx(10.0)


def test_a_phase_that_another_leader_had_begun_goes_on_as_long_as_it_has_taken() -> None:
    board = ProgressBoard({(CYCLE, 1, Phase.TRAIN): 60.0})
    board.begin(CYCLE, 1, Phase.TRAIN, 100.0)
    board.begin(OTHER, 1, Phase.TRAIN, 100.0)
    assert [plain["elapsed_s"] for plain in board.to_plain(122.0)] == [62.0, 22.0]
    board.begin(CYCLE, 1, Phase.EVALUATE, 122.0)
    assert [plain["elapsed_s"] for plain in board.to_plain(130.0)] == [8.0, 30.0]


def test_what_is_done_before_the_first_step_is_shown_as_long_as_it_is_done(
    board: ProgressBoard,
) -> None:
    assert shown(board, 110.0)["preparing"] is None
    board.prepare(CYCLE, Preparing("loading"), 110.0)
    told = {"stage": "loading", "elapsed_s": 2.0, "expected_s": None}
    assert shown(board, 112.0)["preparing"] == told
    board.prepare(CYCLE, Preparing("compiling", 40.0), 113.0)
    told = {"stage": "compiling", "elapsed_s": 12.0, "expected_s": 40.0}
    assert shown(board, 125.0)["preparing"] == told
    board.prepare(CYCLE, Preparing("trying_micro_batches", 20.0, "32 of 64"), 125.0)
    told = {"stage": "trying_micro_batches", "elapsed_s": 1.0, "expected_s": 20.0}
    assert shown(board, 126.0)["preparing"] == told | {"detail": "32 of 64"}
    board.prepare(CYCLE, None)
    assert shown(board, 126.0)["preparing"] is None


def test_what_an_item_does_before_it_counts_is_shown_until_one_counts(
    board: ProgressBoard,
) -> None:
    board.prepare_item(CYCLE, Preparing("loading"), 110.0)
    assert shown(board, 112.0)["preparing"]["stage"] == "loading"
    board.advance(CYCLE, "a", Progressed(0, 66, "documents", {}), 113.0)
    assert shown(board, 113.0)["preparing"] is None
    board.prepare_item(CYCLE, Preparing("loading"), 114.0)
    assert shown(board, 115.0)["preparing"] is None, "another one counts already"


def test_starting_up_has_no_part_in_the_rate(board: ProgressBoard) -> None:
    board.advance(CYCLE, "a", Progressed(1, 41, "documents", {}), 190.0)  # 90 s to load the model
    board.advance(CYCLE, "a", Progressed(21, 41, "documents", {}), 200.0)
    plain = shown(board, 200.0)
    assert plain["rate"] == pytest.approx(2.0)
    assert plain["eta_s"] == pytest.approx(10.0)
    assert shown(board, 207.0)["eta_s"] == pytest.approx(3.0), "it is counted down"
    assert shown(board, 210.0)["rate"] == pytest.approx(1.0), "it has stood still since"
    assert shown(board, 211.0)["eta_s"] is None, "the rest takes longer than what came before"
    board.advance(CYCLE, "a", Progressed(41, 41, "documents", {}), 211.0)
    assert shown(board, 219.0)["eta_s"] == 0.0, "nothing is left, however late it is told"


def test_while_nothing_moves_no_time_is_promised(board: ProgressBoard) -> None:
    for step in range(1, 12):
        board.advance(CYCLE, "train", Progressed(step, 500, "steps", {}), 100.0 + 2 * step)
    assert shown(board, 132.0)["eta_s"] == pytest.approx(968.0), "ten seconds are nothing odd"
    assert "stalled_s" not in shown(board, 132.0)
    plain = shown(board, 143.0)
    assert (plain["eta_s"], plain["stalled_s"]) == (None, pytest.approx(21.0))
    assert shown(board, 722.0)["stalled_s"] == pytest.approx(600.0)
    board.advance(CYCLE, "train", Progressed(12, 500, "steps", {}), 724.0)
    assert "stalled_s" not in shown(board, 724.0)
    assert shown(board, 1324.0)["eta_s"] is not None, "it was silent so long before, and went on"


def test_a_first_step_says_nothing_of_how_long_the_second_takes(board: ProgressBoard) -> None:
    board.advance(CYCLE, "train", Progressed(1, 500, "steps", {}), 160.0)
    assert "stalled_s" not in shown(board, 220.0), "steps of a minute aren't stalled"
    assert shown(board, 350.0)["stalled_s"] == pytest.approx(190.0)
    board.advance(CYCLE, "train", Progressed(2, 500, "steps", {}), 360.0)
    assert "stalled_s" not in shown(board, 900.0)


def test_what_is_prepared_again_or_over_is_not_stalled(board: ProgressBoard) -> None:
    board.advance(CYCLE, "a", Progressed(1, 10, "documents", {}), 110.0)
    board.prepare(CYCLE, Preparing("loading"), 120.0)
    assert "stalled_s" not in shown(board, 200.0)
    board.advance(CYCLE, "a", Progressed(10, 10, "documents", {}), 210.0)
    assert "stalled_s" not in shown(board, 400.0)


@pytest.mark.parametrize(
    ("done", "at_s"),
    [(0, 100.0), (1, 160.0), (3, 170.0), (9, 152.9)],
    ids=["nothing", "the first reading", "two more", "not long enough"],
)
def test_an_estimate_needs_a_basis(board: ProgressBoard, done: int, at_s: float) -> None:
    if done:
        board.advance(CYCLE, "a", Progressed(1, 10, "documents", {}), 150.0)
        board.advance(CYCLE, "a", Progressed(done, 10, "documents", {}), at_s)
    plain = shown(board, at_s)
    assert (plain["done"], plain["rate"], plain["eta_s"]) == (done, None, None)


def test_work_that_begins_again_elsewhere_is_rated_anew(board: ProgressBoard) -> None:
    board.advance(CYCLE, "a", Progressed(50, 90, "documents", {}), 150.0)
    board.advance(CYCLE, "a", Progressed(5, 90, "documents", {}), 200.0)
    assert shown(board, 210.0)["rate"] is None
    board.advance(CYCLE, "a", Progressed(45, 90, "documents", {}), 220.0)
    assert shown(board, 220.0)["rate"] == pytest.approx(2.0)


def test_what_has_no_known_total_has_a_rate_and_no_time_left(board: ProgressBoard) -> None:
    board.advance(CYCLE, "a", Progressed(10, 0, "samples", {}), 150.0)
    board.advance(CYCLE, "a", Progressed(50, 0, "samples", {}), 160.0)
    plain = shown(board, 160.0)
    assert (plain["rate"], plain["eta_s"]) == (4.0, None)


def test_speeds_of_ranks_add_up_and_losses_do_not(board: ProgressBoard) -> None:
    for item, speed in (("a", 100.0), ("b", 50.0)):
        values = {"tokens_per_s": speed, "loss": 2.5}
        board.advance(CYCLE, item, Progressed(1, 2, "steps", values), 100.5)
    assert shown(board, 101.0)["values"] == {"tokens_per_s": 150.0, "loss": 2.5}


def test_a_resumed_training_is_rated_from_where_it_resumed(board: ProgressBoard) -> None:
    board.begin(CYCLE, 1, Phase.TRAIN, 100.0)
    board.advance(CYCLE, "train", Progressed(5, 500, "steps", {}), 110.0)
    board.advance(CYCLE, "train", Progressed(430, 500, "steps", {}), 190.0)
    board.restart_rate(CYCLE)
    board.note(CYCLE, {"resumed_from_step": 400})
    assert shown(board, 199.0)["rate"] is None
    board.advance(CYCLE, "train", Progressed(401, 500, "steps", {}), 200.5)
    board.advance(CYCLE, "train", Progressed(420, 500, "steps", {}), 210.0)
    plain = shown(board, 210.0)
    assert plain["rate"] == pytest.approx(2.0)
    assert plain["eta_s"] == pytest.approx(40.0)
    assert plain["resumed_from_step"] == 400
    assert plain["elapsed_s"] == pytest.approx(110.0)


def test_a_phase_begun_twice_goes_on_and_another_begins_anew(board: ProgressBoard) -> None:
    board.advance(CYCLE, "r1/evaluate/0", Progressed(3, 10, "documents", {}), 110.0)
    board.begin(CYCLE, 1, Phase.EVALUATE, 150.0)
    assert shown(board, 150.0)["done"] == 3
    assert board.elapsed_s(CYCLE, 150.0) == 50.0
    board.begin(CYCLE, 2, Phase.EVALUATE, 160.0)
    assert shown(board, 160.0)["done"] == 0
    assert board.elapsed_s(CYCLE, 165.0) == 5.0


def test_the_gang_is_shown_as_its_workers_start(board: ProgressBoard) -> None:
    board.begin(CYCLE, 1, Phase.TRAIN, 100.0)
    gang = [{"node": "a", "rank": 0, "pid": None, "device": ""} for _ in range(1)]
    gang.append({"node": "b", "rank": 1, "pid": None, "device": ""})
    board.show_gang(CYCLE, gang, {})
    board.show_gang(CYCLE, [], {1: {"pid": 4711, "device": "cuda:0"}})
    seats = shown(board, 101.0)["gang"]
    assert [(seat["rank"], seat["pid"]) for seat in seats] == [(0, None), (1, 4711)]
    assert seats[1]["device"] == "cuda:0"


def test_a_cycle_that_ended_is_no_longer_shown(board: ProgressBoard) -> None:
    board.end(CYCLE)
    board.end(OTHER)
    board.advance(CYCLE, "late", Progressed(1, 2, "steps", {}), 100.5)
    board.restart_rate(CYCLE)
    board.note(CYCLE, {"attempt": 1})
    board.show_gang(CYCLE, [], {})
    assert board.to_plain(101.0) == []
    assert board.elapsed_s(CYCLE, 101.0) == 0.0


def test_what_is_in_the_way_is_told_in_one_short_line():
    board = ProgressBoard()
    board.begin(CYCLE, 1, Phase.TRAIN, 0.0)
    board.explain(CYCLE, "it failed " + "x" * 5000 + "\nTraceback")
    (plain,) = board.to_plain(1.0)
    assert plain["detail"].startswith("it failed xxx")
    assert len(plain["detail"]) == 300
    board.explain(CYCLE, "")
    assert board.to_plain(1.0)[0]["detail"] == ""


def test_what_a_gang_was_predicted_stands_beside_what_it_does(board: ProgressBoard) -> None:
    board.advance(CYCLE, "a", Progressed(1, 9, "steps", {"tokens_per_s": 90.0}), 105.0)
    board.note(CYCLE, {"predicted_tokens_per_s": 100.0})
    told = shown(board, 110.0)["values"]
    assert told == {"tokens_per_s": 90.0, "predicted_tokens_per_s": 100.0}
    board.note(CYCLE, {"predicted_tokens_per_s": None})
    assert shown(board, 110.0)["values"] == {"tokens_per_s": 90.0}


def amount(phase: PhaseProgress) -> tuple[int, int, str]:
    shown = phase.to_plain(10.0)
    return shown["done"], shown["total"], shown["unit"]


def test_no_more_is_done_than_there_is_to_do_where_some_items_know_no_end() -> None:
    phase = PhaseProgress(CYCLE, 1, Phase.FILTER, 0.0)
    phase.advance("clean/0", Progressed(1762, 0, "samples", {}), 1.0)
    assert amount(phase) == (1762, 0, "samples")
    phase.complete("clean/0")
    phase.advance("0", Progressed(1467, 1762, "samples", {}), 3.0)
    assert amount(phase) == (3229, 3524, "samples")


def test_an_item_that_knows_no_end_leaves_that_of_its_phase_open() -> None:
    phase = PhaseProgress(CYCLE, 1, Phase.COLLECT, 0.0)
    phase.advance("0", Progressed(40, 40, "files", {}), 1.0)
    phase.advance("1", Progressed(7, 0, "files", {}), 2.0)
    assert amount(phase) == (47, 0, "files")


def test_files_and_the_samples_that_come_of_them_are_not_added_up() -> None:
    phase = PhaseProgress(CYCLE, 1, Phase.COLLECT, 0.0)
    phase.advance("0", Progressed(958, 0, "files", {}), 1.0)
    phase.advance("1", Progressed(30, 90, "pages", {}), 1.0)
    assert amount(phase) == (958, 0, "files")
    phase.complete("0")
    assert amount(phase) == (30, 90, "pages"), "what is still being done"
    phase.complete("1")
    phase.advance("clean/0", Progressed(10, 0, "samples", {}), 2.0)
    assert amount(phase) == (10, 0, "samples")
    phase.complete("clean/0")
    phase.complete("a name that was never told of")
    assert amount(phase) == (10, 10, "samples")
