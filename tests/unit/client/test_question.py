"""Asking a daemon one thing, without gRPC."""

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest

from jupiterd.client.question import answer_to
from jupiterd.daemon.api.question_socket import question_socket
from jupiterd.errors import (
    DaemonUnreachableError,
    JupiterError,
    MalformedError,
    NotFoundError,
    TimedOutError,
    TooLargeError,
)
from jupiterd.locations import QUESTION_SOCKET
from jupiterd.protocol.local_query import MAX_ANSWER_BYTES, Document, answer_line

STATUS = {"schema": "jupiter/v1", "node": {"id": "a1", "name": "alpha"}}
LARGE = {"schema": "jupiter/v1", "text": "x" * (4 << 20)}

NOBODY = 65_534


async def document(noun: str) -> dict[str, object]:
    match noun:
        case "status":
            return STATUS
        case "large":
            return LARGE
        case "broken":
            raise KeyError(noun)
        case _:
            raise NotFoundError(f"there is no document called {noun}", "jupiterctl --help")


@contextlib.asynccontextmanager
async def a_daemon(state_dir: Path) -> AsyncGenerator[None]:
    """Answer on the question socket of a folder."""
    path = state_dir / QUESTION_SOCKET
    async with asyncio.TaskGroup() as group, question_socket(path, document, group):
        yield


async def asked(noun: str, state_dir: Path) -> Document | None:
    return await asyncio.to_thread(answer_to, noun, state_dir)


@contextlib.contextmanager
def a_daemon_that_says(line: bytes | None, state_dir: Path) -> Iterator[None]:
    """Take one question and say this, then close; with None, say nothing until the test is over."""
    over = threading.Event()
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(state_dir / QUESTION_SOCKET))
        bound.listen()

        def serve() -> None:
            way, _ = bound.accept()
            with way, contextlib.suppress(OSError):  # the asker may have gone
                way.recv(1000)
                if line is None:
                    over.wait(20)
                else:
                    way.sendall(line)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


@pytest.mark.parametrize(("noun", "document"), [("status", STATUS), ("large", LARGE)])
async def test_a_document_of_the_daemon_arrives_as_it_was_told(short_dir, noun, document):
    async with a_daemon(short_dir):
        assert await asked(noun, short_dir) == document


@pytest.mark.parametrize("name", ["x" * 150, "Application Support"])
async def test_any_state_folder_can_be_asked(short_dir, name):
    state_dir = short_dir / name
    state_dir.mkdir()
    # A daemon binds by a relative path; a link to its socket gives the same result here.
    (state_dir / QUESTION_SOCKET).symlink_to(short_dir / QUESTION_SOCKET)
    async with a_daemon(short_dir):
        assert await asked("status", state_dir) == STATUS


async def test_an_error_of_the_daemon_comes_back_as_the_same_error(short_dir):
    async with a_daemon(short_dir):
        with pytest.raises(NotFoundError) as caught:
            await asked("weather", short_dir)
    assert caught.value.message == "there is no document called weather"
    assert caught.value.hint == "jupiterctl --help"


async def test_a_bug_in_the_daemon_is_not_taken_for_an_absent_daemon(short_dir):
    async with a_daemon(short_dir):
        with pytest.raises(JupiterError) as caught:
            await asked("broken", short_dir)
    assert type(caught.value) is JupiterError
    assert caught.value.message == "jupiterd failed: KeyError: 'broken'"
    assert caught.value.hint == f"read its log: {short_dir / 'logs' / 'jupiterd.log'}"


def test_without_a_daemon_nobody_takes_the_question(short_dir):
    assert answer_to("status", short_dir / "nowhere") is None
    assert answer_to("status", short_dir) is None


def test_a_socket_that_was_left_behind_takes_no_question(short_dir):
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(short_dir / QUESTION_SOCKET))
    assert answer_to("status", short_dir) is None


def test_a_file_in_the_place_of_the_socket_takes_no_question(short_dir):
    (short_dir / QUESTION_SOCKET).write_text("no socket")
    assert answer_to("status", short_dir) is None


@contextlib.contextmanager
def as_another_user() -> Iterator[None]:
    """Give up root's rights, where a test has them, to meet permissions at all."""
    own = os.geteuid()
    if own == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(own)


def test_the_socket_of_another_user_takes_no_question(short_dir):
    with a_daemon_that_says(answer_line(STATUS), short_dir):
        (short_dir / QUESTION_SOCKET).chmod(0)
        short_dir.chmod(0o755)
        with as_another_user():
            assert answer_to("status", short_dir) is None
        (short_dir / QUESTION_SOCKET).chmod(0o600)
        assert answer_to("status", short_dir) == STATUS


@pytest.mark.parametrize("said", [b"", answer_line(STATUS)[:-1]])
def test_a_daemon_that_ends_before_it_has_answered_is_named(short_dir, said):
    with (
        a_daemon_that_says(said, short_dir),
        pytest.raises(DaemonUnreachableError, match=r"control\.sock") as caught,
    ):
        answer_to("status", short_dir)
    assert caught.value.hint == f"start it with: jupiterd --state-dir {short_dir}"


def test_a_daemon_that_does_not_answer_in_time_is_given_up(short_dir):
    with (
        a_daemon_that_says(None, short_dir),
        pytest.raises(TimedOutError, match="jupiterd didn't answer in time"),
    ):
        answer_to("status", short_dir, timeout_s=0.01)


def test_an_answer_without_end_is_given_up(short_dir):
    with (
        a_daemon_that_says(b"x" * (MAX_ANSWER_BYTES + 1), short_dir),
        pytest.raises(TooLargeError, match="over 16 MiB"),
    ):
        answer_to("status", short_dir)


def test_an_answer_that_means_nothing_is_refused(short_dir):
    with a_daemon_that_says(b"welcome\n", short_dir), pytest.raises(MalformedError):
        answer_to("status", short_dir)


def test_a_question_over_the_bound_is_not_sent(short_dir):
    with pytest.raises(TooLargeError):
        answer_to("why/" + "3" * 100_000, short_dir)
