"""Real processes that listen, and real senders: Linux gives a machine all of 127.0.0.0/8."""

import queue
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO

import pytest

from jupiterd.processes.script_plan import PortRange
from jupiterd.processes.scripts import listener_filter
from jupiterd.processes.scripts.events import Notice
from jupiterd.processes.scripts.listener_filter import (
    BUDGET,
    LONGEST_LOOK_S,
    closed_to_strangers,
    pause_s,
)
from jupiterd.protocol.frames import ConnectionsRefused
from jupiterd.source_filter.other_processes import fetched
from jupiterd.source_filter.socket_table import SocketTable

SOON_S = 10.0
LOOK_S = 0.02
MEMBER, STRANGER = "127.0.0.2", "127.0.0.9"

LISTENER = """
import os, socket, subprocess, sys, time
depth, port = map(int, sys.argv[1:])
if depth:  # as torchrun starts its ranks: in a session of their own
    sys.exit(subprocess.run([sys.executable, sys.argv[0], str(depth - 1), str(port)],
                            start_new_session=True).returncode)
with socket.create_server(("0.0.0.0", port)) as listener:
    print(listener.getsockname()[1], flush=True)
    taken = []
    while sys.stdin.readline():
        taken.append(listener.accept()[0])
        taken[-1].sendall(b"taken")
"""

pytestmark = pytest.mark.net


def can_be_read() -> bool:
    """Say whether this system has the table."""
    try:
        with closing(SocketTable()) as table:
            table.listening()
    except (OSError, AttributeError):
        return False
    return True


needs_linux = pytest.mark.skipif(not can_be_read(), reason="only Linux closes a socket")


@contextmanager
def listening(folder: Path, depth: int = 0, port: int = 0) -> Generator[tuple[int, IO[bytes]]]:
    """Run a process that listens; yield its port, and what lets it take one connection a line."""
    script = folder / "listener.py"
    script.write_text(LISTENER, encoding="utf-8")
    command = [sys.executable, "-I", "-S", str(script), str(depth), str(port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield int(process.stdout.readline()), process.stdin
        process.stdin.close()


def reaches(sender: str, port: int, timeout_s: float = 0.2) -> bool:
    with socket.socket() as made:
        made.settimeout(timeout_s)
        made.bind((sender, 0))
        try:
            made.connect(("127.0.0.1", port))
        except TimeoutError:
            return False
        return True


def until_closed(port: int) -> None:
    deadline_s = time.monotonic() + SOON_S
    while reaches(STRANGER, port):
        assert time.monotonic() < deadline_s, "a stranger is still heard"
        threading.Event().wait(LOOK_S)  # nobody takes these connections: 128 may wait


class Heard:
    """What the doors tell."""

    def __init__(self) -> None:
        self.events: queue.Queue[Notice | ConnectionsRefused] = queue.Queue()

    def next(self) -> Notice | ConnectionsRefused:
        return self.events.get(timeout=SOON_S)


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Heard:
    monkeypatch.setattr(listener_filter, "NEWS_S", 0.05)
    return Heard()


@needs_linux
@pytest.mark.parametrize("depth", [0, 2])
def test_what_a_script_s_processes_listen_with_hears_the_launch_s_machines_alone(
    tmp_path: Path, heard: Heard, depth: int
) -> None:
    with (
        closed_to_strangers([MEMBER], [], [], heard.events.put),
        listening(tmp_path, depth) as (port, _),
    ):
        until_closed(port)
        assert reaches(MEMBER, port)
        assert reaches("127.0.0.1", port), "the machine itself"
        knocked = heard.next()
        assert isinstance(knocked, ConnectionsRefused), knocked
        assert knocked.count >= 1
    assert heard.events.empty() or isinstance(heard.next(), ConnectionsRefused), (
        "no word of a kernel's port"
    )


@needs_linux
def test_a_port_that_somebody_chose_is_named_and_one_that_is_to_be_open_stays_open(
    tmp_path: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener_filter, "kernels_ports", lambda: PortRange(1, 2))
    with listening(tmp_path) as (open_port, _):
        ports = [PortRange(open_port, open_port)]
        with (
            closed_to_strangers([MEMBER], ports, [], heard.events.put),
            listening(tmp_path) as (port, _),
        ):
            noticed = heard.next()
            assert isinstance(noticed, Notice)
            assert f"--open-port {port} " in noticed.words
            assert not reaches(STRANGER, port)
            assert reaches(STRANGER, open_port)


@needs_linux
def test_a_stranger_who_was_faster_is_hung_up_on_and_named(tmp_path: Path, heard: Heard) -> None:
    with (
        listening(tmp_path) as (port, take),
        closing(socket.create_connection(("127.0.0.1", port), source_address=(STRANGER, 0))) as odd,
        closing(socket.create_connection(("127.0.0.1", port), source_address=(MEMBER, 0))) as one,
    ):
        take.write(b"\n\n")
        take.flush()
        assert (odd.recv(5), one.recv(5)) == (b"taken", b"taken")
        with closed_to_strangers([MEMBER], [], [], heard.events.put):
            odd.settimeout(SOON_S)
            assert odd.recv(1) == b""
            knocked = heard.next()
            assert isinstance(knocked, ConnectionsRefused)
            assert list(knocked.hosts) == [STRANGER]
            one.settimeout(0.1)
            with pytest.raises(TimeoutError):
                one.recv(1)


@needs_linux
def test_a_port_is_free_again_as_soon_as_the_script_has_closed_it(
    tmp_path: Path, heard: Heard
) -> None:
    with closed_to_strangers([MEMBER], [], [], heard.events.put):
        with listening(tmp_path) as (port, _):
            until_closed(port)
        with closing(socket.create_server(("127.0.0.1", port))):
            pass


@needs_linux
def test_only_what_processes_below_have_is_fetched() -> None:
    with (
        closing(socket.create_server(("127.0.0.1", 0))) as ours,
        closing(SocketTable()) as table,
    ):
        rows = {row.port: row.inode for row in table.listening()}
        assert rows[ours.getsockname()[1]] > 0
        assert list(fetched(rows.values())) == [] or all(
            found.getsockname() != ours.getsockname() for _, found in fetched(rows.values())
        )


@needs_linux
def test_where_the_system_refuses_it_is_said_once(
    tmp_path: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_inodes: object) -> Iterator[object]:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(listener_filter, "fetched", refuse)
    with (
        closed_to_strangers([MEMBER], [], [], heard.events.put),
        listening(tmp_path) as (port, _),
    ):
        noticed = heard.next()
        assert isinstance(noticed, Notice)
        assert "Operation not permitted" in noticed.words
        assert reaches(STRANGER, port)
    assert heard.events.empty()


@needs_linux
def test_a_look_that_fails_now_and_then_leaves_no_door_open(
    tmp_path: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing: list[Exception] = [TimeoutError("no answer"), struct.error("too short")]

    def now_and_then(inodes: Collection[int]) -> Iterator[tuple[int, socket.socket]]:
        if failing:
            raise failing.pop()
        return fetched(inodes)

    monkeypatch.setattr(listener_filter, "RETRY_S", 0.02)
    monkeypatch.setattr(listener_filter, "fetched", now_and_then)
    with (
        closed_to_strangers([MEMBER], [], [], heard.events.put),
        listening(tmp_path) as (port, _),
    ):
        until_closed(port)
        assert reaches(MEMBER, port)
    told = [heard.events.get_nowait() for _ in range(heard.events.qsize())]
    assert not any(isinstance(event, Notice) for event in told)


@needs_linux
def test_a_socket_that_the_kernel_does_not_close_is_told_of(
    tmp_path: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener_filter, "RETRY_S", 0.02)
    monkeypatch.setattr(listener_filter, "close_to_others", lambda *_: False)
    with closed_to_strangers([MEMBER], [], [], heard.events.put), listening(tmp_path):
        noticed = heard.next()
        assert isinstance(noticed, Notice)
        assert "takes no filter" in noticed.words


def test_nothing_is_looked_for_where_no_machine_says_its_addresses(heard: Heard) -> None:
    before = threading.active_count()
    with closed_to_strangers([], [], [], heard.events.put):
        assert threading.active_count() == before


def test_looks_are_quick_where_sockets_appear_and_cost_next_to_nothing_later() -> None:
    assert pause_s(0.0, 0.0001) == listener_filter.FIRST_LOOKS_S
    assert pause_s(3.0, 0.0001) < 0.02
    for cost_s in (0.00005, 0.0001, 0.0005):
        assert cost_s / pause_s(60.0, cost_s) <= BUDGET
        assert cost_s / pause_s(3600.0, cost_s) <= BUDGET
    assert pause_s(3600.0, 0.0) == LONGEST_LOOK_S
