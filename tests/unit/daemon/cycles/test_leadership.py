"""One reign after another on one node."""

from pathlib import Path

from jupiterd.cycle.base.work_item import Phase
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.ids import CycleId
from tests.support.daemon.two_nodes import lead, serving

CYCLE = CycleId("d" * 16)


async def test_a_reign_that_still_ends_takes_nothing_from_the_next_ones_board(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as node:
        await lead(node)
        first = node.leading
        assert first is not None
        first.board.begin(CYCLE, 1, Phase.TRAIN, now_s())
        node.leadership.on_step_down("a stronger one")
        node.leadership.on_lead(2)
        second = node.leading
        assert second is not None
        assert node.local_view.live_progress(CYCLE) is None
        second.board.begin(CYCLE, 1, Phase.TRAIN, now_s())
        first.board.end(CYCLE)
        assert node.local_view.live_progress(CYCLE) is not None
