"""How fast a node is, of what the leader tells of running phases."""

import pytest

from jupiterd.cycle.base.work_item import Phase
from jupiterd.daemon.leader.node_speed import NodeSpeed, speed_of
from jupiterd.daemon.leader.progress_board import ProgressBoard
from jupiterd.ids import CycleId

CYCLE = CycleId("c" * 16)


@pytest.fixture
def board() -> ProgressBoard:
    """A gang of three ranks on two nodes."""
    board = ProgressBoard()
    board.begin(CYCLE, 1, Phase.TRAIN, 0.0)
    seats = (("alpha", 0), ("alpha", 1), ("beta", 2))
    board.show_gang(CYCLE, [{"node": node, "rank": rank} for node, rank in seats], {})
    return board


def test_a_node_is_as_fast_as_its_ranks_together(board: ProgressBoard) -> None:
    for rank, speed in enumerate((100.0, 50.04, 30.0)):
        board.stepped(CYCLE, rank, 7, speed)
    assert speed_of("alpha", board.to_plain(1.0)) == NodeSpeed(150.0, 0)
    assert speed_of("beta", board.to_plain(1.0)) == NodeSpeed(30.0, 0)


def test_a_node_is_as_far_behind_as_its_slowest_rank(board: ProgressBoard) -> None:
    for rank, step in enumerate((9, 7, 9)):
        board.stepped(CYCLE, rank, step, None)
    assert speed_of("alpha", board.to_plain(1.0)) == NodeSpeed(None, 2)
    assert speed_of("beta", board.to_plain(1.0)) == NodeSpeed(None, 0)


def test_who_tells_a_moment_later_is_not_behind(board: ProgressBoard) -> None:
    for step in (1, 2, 3):
        for rank in range(3):
            board.stepped(CYCLE, rank, step, None)
            assert speed_of("beta", board.to_plain(1.0)).step_lag in {None, 0}


def test_a_gang_that_is_formed_anew_has_no_speed_yet(board: ProgressBoard) -> None:
    board.stepped(CYCLE, 0, 7, 100.0)
    board.show_gang(CYCLE, [{"node": "alpha", "rank": 0}], {})
    assert speed_of("alpha", board.to_plain(1.0)) == NodeSpeed(None, None)


def test_a_node_that_writes_ahead_is_as_fast_as_it_writes() -> None:
    live = [{"gang": [], "ahead": [{"node": "alpha", "tokens_per_s": 12.0}]}]
    assert speed_of("alpha", live) == NodeSpeed(12.0, None)
    assert speed_of("beta", live) == NodeSpeed(None, None)


@pytest.mark.parametrize(
    "live",
    [
        {},
        {"gang": 5},
        {"gang": [5]},
        {"gang": [{"node": "alpha", "tokens_per_s": "fast", "step_lag": True}]},
    ],
)
def test_rows_that_make_no_sense_tell_nothing(live: dict[str, object]) -> None:
    assert speed_of("alpha", [live]) == NodeSpeed(None, None)
