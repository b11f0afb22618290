"""Ranks let nobody in but their gang: real listeners of gloo and MLX, and a stranger who scans."""

import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from jupiterd.protocol.frames import ConnectionsRefused
from jupiterd.source_filter.listeners import own_listeners
from jupiterd.workers.train import rank_listener_filter
from jupiterd.workers.train.rank_listener_filter import closed_to_strangers
from tests.support.workers.gangs import HOST, Gangs, free_port

pytestmark = [
    pytest.mark.net,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux closes a socket to others"),
]

STRANGER = "127.0.0.9"
SOON_S = 5.0
MAX_HELD = 300
"""A process has 1,024 descriptors."""


def reaches(sender: str, port: int, timeout_s: float = 0.2) -> bool:
    """Say whether somebody's connection is taken."""
    with socket.socket() as made:
        made.settimeout(timeout_s)
        made.bind((sender, 0))
        with suppress(OSError):
            made.connect((HOST, port))
            return True
    return False


@contextmanager
def scanned(ports: list[int]) -> Generator[set[int]]:
    """Let a stranger try these ports all the time; yield those that it ever got connected to."""
    got: set[int] = set()
    is_over = threading.Event()

    def scan() -> None:
        held: deque[socket.socket] = deque()  # whoever hangs up is no danger
        while not is_over.wait(0.005):
            tried = [knock(port) for port in ports]
            got.update(port for port, made in zip(ports, tried, strict=True) if is_up(made))
            held.extend(tried)
            while len(held) > MAX_HELD:
                held.popleft().close()
        for made in held:
            made.close()

    thread = threading.Thread(target=scan)
    thread.start()
    try:
        yield got
    finally:
        is_over.set()
        thread.join()


def knock(port: int) -> socket.socket:
    """Begin to connect; on loopback it is done at once, if it is to be done at all."""
    made = socket.socket()
    made.setblocking(False)
    made.bind((STRANGER, 0))
    made.connect_ex((HOST, port))
    return made


def ports_of_this_process() -> set[int]:
    found = own_listeners()
    ports = {int(each.getsockname()[1]) for each in found}
    for each in found:
        each.close()
    return ports


def is_up(made: socket.socket) -> bool:
    with suppress(OSError):
        made.getpeername()
        return True
    return False


def test_what_gloo_listens_on_is_closed_at_once_and_who_knocks_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from torch.distributed import ProcessGroupGloo

    monkeypatch.setattr(rank_listener_filter, "NEWS_S", 0.05)
    heard: list[ConnectionsRefused] = []
    before = ports_of_this_process()
    with closed_to_strangers([HOST, "10.0.0.7"], heard.append) as have_met:
        device = ProcessGroupGloo.create_device(interface="lo")
        deadline_s = time.monotonic() + SOON_S
        (port,) = ports_of_this_process() - before
        while reaches(STRANGER, port) and time.monotonic() < deadline_s:
            pass
        assert reaches(HOST, port)
        assert not reaches(STRANGER, port)
        have_met()
        while not heard and time.monotonic() < deadline_s:
            threading.Event().wait(0.01)
    assert heard
    assert heard[0].count >= 1
    assert set(heard[0].hosts) <= {STRANGER}
    del device


@pytest.mark.full
@pytest.mark.mlx
def test_a_port_scan_breaks_no_ring_that_forms(gangs: Gangs, tmp_path: Path) -> None:
    pytest.importorskip("mlx.core")
    ports = [free_port(HOST), free_port(HOST)]
    given = {"ring": [f"{HOST}:{port}" for port in ports], "member_hosts": [HOST]}
    with scanned(ports) as got:
        told = gangs.trained(tmp_path, "mlx", 2, [0.0, 0.0], more_params=given)
    assert [len(rank["steps"]) for rank in told] == [2, 2]
    assert got == set(ports), "it was there all the time, and was heard by nobody who matters"
