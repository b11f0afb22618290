"""What a caller of the question socket may do, and what it may not."""

import asyncio
import json
import socket
import stat
import tempfile
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from jupiterd.daemon.api.question_socket import question_socket
from jupiterd.protocol.local_query import MAX_QUESTION_BYTES, question_line
from tests.support.daemon.two_nodes import until

SOON_S = 0.2
LARGE_BYTES = 8 << 20


@pytest.fixture
def path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="jt-", dir="/tmp") as folder:
        yield Path(folder) / "question.sock"


class Daemon:
    """Answers each noun with itself; `slow` waits to be released."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.released = asyncio.Event()

    async def document(self, noun: str) -> dict[str, object]:
        self.asked.append(noun)
        if noun == "slow":
            await self.released.wait()
        if noun == "broken":
            raise OSError(5, "a disk that fails")
        return {"about": "x" * LARGE_BYTES if noun == "large" else noun}


@asynccontextmanager
async def answering(path: Path, timeout_s: float = 20.0) -> AsyncGenerator[Daemon]:
    daemon = Daemon()
    async with (
        asyncio.TaskGroup() as group,
        question_socket(path, daemon.document, group, timeout_s),
    ):
        yield daemon


async def said_to(path: Path, *sent: bytes, then_ends: bool = False) -> bytes:
    """Say this to the socket; return all that it says until it closes."""
    reader, writer = await asyncio.open_unix_connection(path)
    writer.writelines(sent)
    if then_ends:
        writer.write_eof()
    try:
        return await reader.read()
    finally:
        writer.close()


async def told(path: Path, *sent: bytes, then_ends: bool = False) -> dict[str, dict[str, str]]:
    return json.loads(await said_to(path, *sent, then_ends=then_ends))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def list_of(folder: Path) -> list[str]:
    return [each.name for each in folder.iterdir()]


async def test_only_its_owner_may_open_the_socket(path: Path) -> None:
    async with answering(path):
        assert mode(path) == 0o600


async def test_what_a_killed_daemon_left_behind_is_replaced(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    async with answering(path):
        assert await told(path, question_line("status")) == {"document": {"about": "status"}}


async def test_the_socket_goes_with_the_daemon(path: Path) -> None:
    async with answering(path):
        assert list_of(path.parent) == [path.name]
    assert list_of(path.parent) == []


async def test_each_connection_is_answered_once(path: Path) -> None:
    async with answering(path) as daemon:
        line = await said_to(path, question_line("status") + question_line("cycle"))
    assert json.loads(line) == {"document": {"about": "status"}}
    assert daemon.asked == ["status"]


@pytest.mark.parametrize("line", [b"status\n", b"\x00\n", b"GET / HTTP/1.1\r\n", b"{}\n"])
async def test_what_is_no_question_is_answered_with_an_error(path: Path, line: bytes) -> None:
    async with answering(path) as daemon:
        error = (await told(path, line))["error"]
    assert (error["code"], daemon.asked) == ("malformed", [])
    assert error["hint"]


@pytest.mark.parametrize("end", [b"", b"\n"])
async def test_a_question_over_the_bound_is_not_read(path: Path, end: bytes) -> None:
    async with answering(path) as daemon:
        error = (await told(path, b"x" * (MAX_QUESTION_BYTES + 1) + end))["error"]
    assert (error["code"], daemon.asked) == ("too-large", [])
    assert error["hint"] == "ask for something by its id or name"


async def test_a_question_that_breaks_off_is_refused(path: Path) -> None:
    async with answering(path) as daemon:
        error = (await told(path, question_line("status")[:-1], then_ends=True))["error"]
    assert (error["code"], daemon.asked) == ("malformed", [])


async def test_who_says_nothing_is_dropped(path: Path) -> None:
    async with answering(path, SOON_S) as daemon:
        assert await said_to(path, b'{"document"') == b""
    assert daemon.asked == []


async def test_an_answer_that_takes_too_long_is_given_up(path: Path) -> None:
    async with answering(path, SOON_S) as daemon:
        assert await said_to(path, question_line("slow")) == b""
    assert daemon.asked == ["slow"]


async def test_who_does_not_read_the_answer_is_dropped(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as caller:
        async with answering(path, SOON_S) as daemon:
            caller.connect(str(path))
            caller.sendall(question_line("large"))
            await until(lambda: daemon.asked == ["large"])
        # The calls have ended: that is what leaving the daemon has waited for.
        read = b""
        while piece := caller.recv(1 << 20):
            read += piece
    assert len(read) < LARGE_BYTES


async def test_who_goes_away_harms_nobody(path: Path) -> None:
    async with answering(path) as daemon:
        with socket.socket(socket.AF_UNIX) as caller:
            caller.connect(str(path))
            caller.sendall(question_line("large"))
        assert await told(path, question_line("status")) == {"document": {"about": "status"}}
    assert sorted(daemon.asked) == ["large", "status"]


async def test_a_slow_answer_holds_up_no_other(path: Path) -> None:
    async with answering(path) as daemon:
        slow = asyncio.ensure_future(told(path, question_line("slow")))
        assert await told(path, question_line("status")) == {"document": {"about": "status"}}
        daemon.released.set()
        assert await slow == {"document": {"about": "slow"}}


async def test_a_bug_is_logged_and_told_and_the_daemon_goes_on(path: Path, caplog) -> None:
    async with answering(path):
        assert await told(path, question_line("broken")) == {
            "bug": "OSError: [Errno 5] a disk that fails"
        }
        assert await told(path, question_line("status")) == {"document": {"about": "status"}}
    (record,) = caplog.records
    assert (record.message, record.noun) == ("question_failed", "broken")
    assert record.exc_info
