"""The progress of islands, as that of the one run that people see."""

from typing import Any

import pytest

from jupiterd.cycle.base.work_item import Phase
from jupiterd.daemon.leader.progress_board import ProgressBoard
from jupiterd.ids import CycleId
from jupiterd.protocol.frames import Progressed

RUN, ONE, OTHER = (CycleId(letter * 16) for letter in "rab")
OUTER = {
    "number": 3, "states": {ONE: "training", OTHER: "training"}, "steps": 200, "first_step": 90,
    "tokens": 9_000, "step_tokens": 100,
}  # fmt: skip


@pytest.fixture
def board() -> ProgressBoard:
    board = ProgressBoard()
    board.begin(RUN, 1, Phase.TRAIN, 0.0)
    for island, node in ((ONE, "alpha"), (OTHER, "beta")):
        board.begin(island, 1, Phase.TRAIN, 0.0, part_of=RUN)
        board.show_gang(island, [{"node": node, "rank": 0}], {})
    board.note(RUN, {"outer": OUTER})
    return board


def shown(board: ProgressBoard) -> dict[str, Any]:
    (plain,) = board.to_plain(10.0)
    return plain


def say(board: ProgressBoard, island: CycleId, step: int, loss: float, rate: float) -> None:
    values = {"loss": loss, "tokens_per_s": rate, "outer_step": 3.0}
    board.advance(island, "train", Progressed(step, 200, "steps", values), 5.0)


def test_people_see_one_run_that_is_as_far_as_the_last_of_its_islands(board: ProgressBoard) -> None:
    say(board, ONE, 100, 2.0, 300.0)
    say(board, OTHER, 95, 4.0, 100.0)
    plain = shown(board)
    assert (plain["cycle"], plain["done"], plain["total"]) == (RUN, 95, 200)
    assert plain["values"] == {"loss": 2.5, "tokens_per_s": 400.0, "tokens": 9_500}
    assert [(seat["node"], seat["island"]) for seat in plain["gang"]] == [("alpha", 1), ("beta", 2)]
    assert plain["outer"] == {
        "number": 3,
        "islands": [
            {"state": "training", "step": 100, "tokens_per_s": 300.0, "outer_step": 3.0},
            {"state": "training", "step": 95, "tokens_per_s": 100.0, "outer_step": 3.0},
        ],
    }


def test_the_loss_on_held_out_text_is_that_of_what_all_have_merged(board: ProgressBoard) -> None:
    for island in (ONE, OTHER):
        values = {"loss": 2.0, "held_out": 9.0, "best_step": 60.0, "risen": 1.0}
        board.advance(island, "train", Progressed(100, 200, "steps", values), 5.0)
    assert shown(board)["values"] == {"loss": 2.0, "tokens": 10_000}, "none was decided by yet"
    decided = {"held_out": 3.5, "best_held_out": 3.4, "best_step": 80.0}
    board.note(RUN, {"outer": OUTER | {"held_out": decided}})
    assert shown(board)["values"] == {"loss": 2.0, "tokens": 10_000} | decided


def test_an_island_that_is_away_holds_up_nobody(board: ProgressBoard) -> None:
    say(board, ONE, 100, 2.0, 300.0)
    say(board, OTHER, 5, 9.0, 100.0)
    board.note(RUN, {"outer": OUTER | {"states": {ONE: "training", OTHER: "away"}}})
    plain = shown(board)
    assert (plain["done"], plain["values"]["tokens_per_s"]) == (100, 300.0)
    assert plain["outer"]["islands"][1] == {"state": "away"}


def test_before_the_first_step_nothing_is_made_up(board: ProgressBoard) -> None:
    plain = shown(board)
    assert (plain["done"], plain["total"], plain["values"]) == (90, 200, {"tokens": 9_000})


def test_what_hinders_an_island_is_told(board: ProgressBoard) -> None:
    board.explain(RUN, "outer step 3: 2 islands")
    board.explain(OTHER, "beta has gone; trying again")
    assert shown(board)["detail"] == "outer step 3: 2 islands; beta has gone; trying again"


def test_what_all_came_to_stands_beside_what_they_were_predicted(board: ProgressBoard) -> None:
    say(board, ONE, 100, 2.0, 300.0)
    say(board, OTHER, 95, 4.0, 100.0)
    board.note(ONE, {"predicted_tokens_per_s": 500.0})  # by itself, without its exchanges
    assert "predicted_tokens_per_s" not in shown(board)["values"]
    rates = {"tokens_per_s": 380.0, "predicted_tokens_per_s": 360.0}
    board.note(RUN, {"outer": OUTER | rates})
    assert shown(board)["values"].items() >= rates.items()


def test_ranks_are_behind_the_foremost_island(board: ProgressBoard) -> None:
    board.stepped(ONE, 0, 100, 300.0)
    board.stepped(OTHER, 0, 95, 100.0)
    assert [seat["step_lag"] for seat in shown(board)["gang"]] == [0, 5]
