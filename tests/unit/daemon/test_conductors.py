"""What a leader does with a cycle that it can't read."""

from pathlib import Path

from jupiterd.cluster.facts import WindowSet
from jupiterd.daemon.clock import now_s
from tests.unit.cluster.building import CYCLE, commanded, started
from tests.unit.daemon.two_nodes import lead, serving, until


async def test_a_cycle_of_another_version_waits_with_a_reason_and_holds_up_nothing(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one:
        await lead(one)
        assert one.leading is not None
        board = one.leading.board
        await one.leading.record(started())  # of its domain this version understands nothing
        await until(lambda: "can't go on with it" in str(board.to_plain(now_s())))
        assert not one.journal.state.cycles[CYCLE].finished
        await one.leading.record(commanded("stopped", 1), WindowSet(is_open=True, edit=1))
        await until(lambda: board.to_plain(now_s()) == [])
