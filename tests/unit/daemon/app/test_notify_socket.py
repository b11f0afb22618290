import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupiterd.daemon.app.systemd_notices import NotifySocket, watchdog_s


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder whose path is short enough for a socket in it."""
    with tempfile.TemporaryDirectory(prefix="jt-", dir="/tmp") as name:
        yield Path(name)


@pytest.mark.parametrize("address", ["", "vsock:2:1234", "relative"])
def test_where_nobody_listens_that_we_know_there_is_no_socket(address: str) -> None:
    assert NotifySocket.found_in({"NOTIFY_SOCKET": address} if address else {}) is None


def test_everything_is_sent_in_one_datagram_and_a_value_is_one_line(short_folder: Path) -> None:
    path = short_folder / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(path))
        notify_socket = NotifySocket.found_in({"NOTIFY_SOCKET": str(path)})
        assert notify_socket is not None
        notify_socket.send(READY=1, STATUS="two\nlines=1")
        assert listener.recv(4096) == b"READY=1\nSTATUS=two lines=1"


def test_a_listener_that_is_gone_or_full_stops_nothing(short_folder: Path) -> None:
    path = short_folder / "notify"
    notify_socket = NotifySocket(str(path))
    notify_socket.send(READY=1)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(path))
        for _ in range(5000):
            notify_socket.send(WATCHDOG=1)


@pytest.mark.parametrize(
    ("environment", "wanted_s"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "3000000"}, 3.0),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid())}, 3.0),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
    ],
)
def test_signs_of_life_are_wanted_of_this_process_or_of_none(
    environment: dict[str, str], wanted_s: float | None
) -> None:
    assert watchdog_s(environment) == wanted_s
