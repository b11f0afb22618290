"""What people see of a gang before its first step."""

from typing import Any, cast

import pytest

from jupiterd.cycle.base.work_item import Phase
from jupiterd.daemon.gangs import gang_progress
from jupiterd.daemon.gangs.gang_progress import GangProgress
from jupiterd.daemon.leader.progress_board import ProgressBoard
from jupiterd.ids import CycleId
from jupiterd.protocol.frames import Preparing

CYCLE = CycleId("c")


def test_a_stage_that_only_says_how_far_it_is_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    board = ProgressBoard()
    board.begin(CYCLE, 1, Phase.TRAIN, 0.0)
    progress = GangProgress(board, CYCLE, cast("Any", None))

    def told(at_s: float, stage: Preparing) -> dict[str, Any]:
        monkeypatch.setattr(gang_progress, "now_s", lambda: at_s)
        progress.prepares(0, stage)
        return board.to_plain(at_s)[0]["preparing"]

    told(10.0, Preparing("loading"))
    assert told(12.0, Preparing("trying_micro_batches", 20.0, "8 of 64"))["elapsed_s"] == 0.0
    shown = told(15.0, Preparing("trying_micro_batches", 20.0, "16 of 64"))
    assert (shown["detail"], shown["elapsed_s"]) == ("16 of 64", 3.0)
    assert told(16.0, Preparing("compiling"))["elapsed_s"] == 0.0
