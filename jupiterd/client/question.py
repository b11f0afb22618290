"""One request to the local daemon for a document, without gRPC.

Owns the connection and its time-out. Doesn't know which documents there are, or their content.
"""

import socket
import time
from pathlib import Path

from jupiterd.client.socket_path import SocketPath
from jupiterd.errors import Bug, DaemonUnreachableError, JupiterError, TimedOutError, TooLargeError
from jupiterd.locations import QUESTION_SOCKET
from jupiterd.protocol.local_query import (
    ANSWER_TIMEOUT_S,
    MAX_ANSWER_BYTES,
    Document,
    question_line,
    read_answer,
)

_PIECE_BYTES = 1 << 18


def answer_to(noun: str, state_dir: Path, timeout_s: float = ANSWER_TIMEOUT_S) -> Document | None:
    """Return the daemon's document about `noun`; None: nothing listens on the question socket.

    That is so if no daemon runs, or one that is older than that socket.

    Raises:
        DaemonUnreachableError: the daemon ended before it answered.
        JupiterError: the error that it answered with, or the reason that there was no answer.
    """
    question = question_line(noun)
    with (
        SocketPath(state_dir, QUESTION_SOCKET) as path,
        socket.socket(socket.AF_UNIX) as connection,
    ):
        connection.settimeout(timeout_s)
        try:
            connection.connect(str(path.short))
        except OSError:
            return None
        try:
            connection.sendall(question)
            answer = _line(connection, timeout_s)
        except TimeoutError as error:
            raise _silent(state_dir) from error
        except OSError as error:
            raise _gone(state_dir) from error
    if not answer.endswith(b"\n"):
        raise _gone(state_dir)
    try:
        return read_answer(answer)
    except Bug as error:
        raise _failed(state_dir, str(error)) from error


def _line(connection: socket.socket, timeout_s: float) -> bytes:
    """Return the bytes that the daemon sends until it closes the connection."""
    deadline_s = time.monotonic() + timeout_s
    line = bytearray()
    while piece := connection.recv(_PIECE_BYTES):
        line += piece
        if len(line) > MAX_ANSWER_BYTES:
            raise TooLargeError(
                f"jupiterd's answer is over {MAX_ANSWER_BYTES >> 20} MiB",
                "ask for less, such as one run by its name",
            )
        connection.settimeout(max(deadline_s - time.monotonic(), 0.001))
    return bytes(line)


def _gone(state_dir: Path) -> DaemonUnreachableError:
    from jupiterd.client.reachability import unreachable

    return unreachable(state_dir)


def _silent(state_dir: Path) -> TimedOutError:
    from jupiterd.client.reachability import silent

    return silent(state_dir)


def _failed(state_dir: Path, reason: str) -> JupiterError:
    from jupiterd.client.reachability import failed

    return failed(state_dir, reason)
