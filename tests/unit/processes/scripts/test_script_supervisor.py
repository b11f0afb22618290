"""A keeper tells why its ranks end, and what kept them from starting."""

import asyncio
import sys
import tempfile
from pathlib import Path

import pytest

from jupiterd.errors import ConflictError
from jupiterd.processes.script_plan import RankOrder, ScriptOrder
from jupiterd.processes.scripts.event_log import EventReader, EventWriter
from jupiterd.processes.scripts.events import Ended, Ending, Over, Printed
from jupiterd.processes.scripts.machine_share import MachineShare, ShareDescription, is_locked
from jupiterd.processes.scripts.script_supervisor import ScriptSupervisor

TIMEOUT_S = 20.0
WAITS = "import os, time; os.write(1, b'up'); time.sleep(300)"


@pytest.fixture
def part(tmp_path: Path) -> MachineShare:
    made = MachineShare(tmp_path / "abc.0")
    made.make(ShareDescription("a", "attic", (), "/", (0,), 0.0))
    return made


def order(folder: Path) -> ScriptOrder:
    return ScriptOrder((sys.executable, "-S", "-c", WAITS), str(folder), (RankOrder(0, {}),))


async def test_the_reason_is_told_before_the_ranks_end(part: MachineShare, tmp_path: Path) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        keeping = asyncio.ensure_future(ScriptSupervisor(part, order(tmp_path)).keep())
        while not list(EventReader(part.folder).read()):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)
        part.send("end", "its machine's owner ended it")
        await keeping
    reason = "its machine's owner ended it"
    _, *events = EventReader(part.folder).read()
    assert events == [Ending(reason), Ended(0, 143), Over(reason)]


async def test_what_the_system_has_none_left_of_is_said_as_it_is(
    part: MachineShare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "full"))
    await ScriptSupervisor(part, order(tmp_path)).keep()
    assert part.over is not None
    assert part.over.code == ConflictError.code
    assert "can't be started: [Errno 2] No such file" in part.over.reason


def test_an_end_is_found_without_reading_all_that_was_printed(part: MachineShare) -> None:
    assert part.over is None
    writer = EventWriter(part.folder, segment_bytes=100, segments=3)
    for number in range(50):
        writer.append(Printed(0, is_error=False, data=b"line %d\n" % number))
    writer.append(Over("why"))
    assert part.over == Over("why"), "of a keeper from before it wrote it down"
    part.write_over(Over("how", "conflict", "do that"))
    for path in part.folder.glob("events.*"):
        path.write_bytes(b"\xff" * 100)
    assert part.over == Over("how", "conflict", "do that")


def test_a_lock_that_may_not_be_looked_at_counts_as_held(
    part: MachineShare, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As root has them in the state folder of a system's service; what runs there isn't ended."""

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    assert not is_locked(part.folder / "lock")
    monkeypatch.setattr("jupiterd.processes.scripts.machine_share.os.open", refuse)
    assert is_locked(part.folder / "lock")
