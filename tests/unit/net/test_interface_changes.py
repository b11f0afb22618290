"""Being told by the system that interfaces have changed."""

import socket
import sys
from collections.abc import Iterator

import pytest

from jupiterd.net import interface_changes, interfaces
from jupiterd.net.interface_changes import InterfaceChanges
from jupiterd.net.interfaces import ANYHOW_S, SHARED_S

Addresses = list[tuple[str, str]]

FIRST: Addresses = [("eth0", "192.0.2.1")]
NEXT: Addresses = [("eth0", "192.0.2.1"), ("eth1", "198.51.100.1")]


class System:
    """What a system has and tells."""

    def __init__(self, listening: socket.socket, told: socket.socket) -> None:
        self.listening = listening
        self.told = told
        self.found = FIRST
        self.is_readable = True
        self.readings = 0

    def tell(self) -> None:
        self.told.send(b"something has changed")

    def read(self, _interfaces: tuple[str, ...] = ()) -> Addresses:
        if not self.is_readable:
            raise OSError("too many open files")
        self.readings += 1
        return self.found


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> Iterator[System]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs:
        ours.settimeout(0)
        system = System(ours, theirs)
        monkeypatch.setattr(interface_changes, "_listening", lambda: ours)
        monkeypatch.setattr(interfaces, "addresses_by_interface", system.read)
        yield system


def test_news_come_once(system: System) -> None:
    news = InterfaceChanges()
    assert not news.may_have_come()
    system.tell()
    system.tell()
    assert news.may_have_come()
    assert not news.may_have_come()


def test_where_the_system_says_nothing_there_may_always_be_news(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(interface_changes, "_listening", lambda: None)
    news = InterfaceChanges()
    assert news.may_have_come()
    assert news.may_have_come()


def test_where_what_is_told_cannot_be_read_there_may_be_news(system: System) -> None:
    news = InterfaceChanges()
    system.listening.close()
    assert news.may_have_come(), "for it can't be read"


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells")
def test_linux_lets_us_listen() -> None:
    listening = interface_changes._listening()  # pyright: ignore[reportPrivateUsage]
    assert listening is not None
    listening.close()


def test_addresses_are_read_anew_when_the_system_tells(system: System) -> None:
    recent = interfaces.Recent()
    assert recent.read(0.0) == FIRST
    system.found = NEXT
    assert recent.read(SHARED_S) == FIRST, "nobody has told"
    system.tell()
    assert recent.read(1.5 * SHARED_S) == FIRST, "others have looked just now"
    assert recent.read(2 * SHARED_S) == NEXT
    assert system.readings == 2


def test_addresses_are_read_anew_now_and_then_all_the_same(system: System) -> None:
    recent = interfaces.Recent()
    recent.read(0.0)
    system.found = NEXT
    assert recent.read(ANYHOW_S - SHARED_S) == FIRST
    assert recent.read(ANYHOW_S) == NEXT


def test_a_change_that_could_not_be_read_is_not_forgotten(system: System) -> None:
    recent = interfaces.Recent()
    recent.read(0.0)
    system.found, system.is_readable = NEXT, False
    system.tell()
    for _ in range(2):
        with pytest.raises(OSError, match="too many"):
            recent.read(SHARED_S)
    system.is_readable = True
    assert recent.read(SHARED_S) == NEXT
