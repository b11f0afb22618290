"""Real sockets, and real senders: Linux gives a machine all of 127.0.0.0/8."""

import socket
import sys
from collections.abc import Iterator
from contextlib import closing

import pytest

from jupiterd.source_filter.listeners import (
    close_to_others,
    dropped,
    hang_up_on_others,
    own_listeners,
)
from jupiterd.source_filter.ring_port import hold_ring_port

pytestmark = [
    pytest.mark.net,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux closes a socket to others"),
]

MEMBER, STRANGER, HERE = "127.0.0.2", "127.0.0.9", "127.0.0.1"
SOON_S = 0.2


def listening(host: str, family: int = socket.AF_INET) -> socket.socket:
    found = socket.socket(family, socket.SOCK_STREAM)
    if family == socket.AF_INET6:
        found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    found.bind((host, 0))
    found.listen(8)
    return found


def connected(sender: str, host: str, port: int) -> socket.socket | None:
    """Return a connection from there; None where nobody answers soon."""
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    made.settimeout(SOON_S)
    made.bind((sender, 0))
    try:
        made.connect((host, port))
    except TimeoutError:
        made.close()
        return None
    return made


def answers(listener: socket.socket, sender: str, host: str) -> bool:
    made = connected(sender, host, listener.getsockname()[1])
    if made is not None:
        made.close()
    return made is not None


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with closing(listening(HERE)) as found:
        yield found


def test_a_member_is_answered_and_a_stranger_is_not_and_is_counted(
    listener: socket.socket,
) -> None:
    assert answers(listener, STRANGER, HERE), "as long as nothing was said"
    assert close_to_others(listener, [MEMBER, "10.0.0.1"])
    assert answers(listener, MEMBER, HERE)
    assert dropped(listener) == 0
    assert not answers(listener, STRANGER, HERE)
    assert dropped(listener) >= 1


def test_ipv6_and_ipv4_over_an_ipv6_socket() -> None:
    with closing(listening("::", socket.AF_INET6)) as both:
        assert close_to_others(both, ["::1", MEMBER])
        assert answers(both, "::1", "::1")
        assert answers(both, MEMBER, HERE)
        assert not answers(both, STRANGER, HERE)
    with closing(listening("::1", socket.AF_INET6)) as other:
        assert close_to_others(other, ["::2"])
        assert not answers(other, "::1", "::1")


def test_nobody_opens_it_again(listener: socket.socket) -> None:
    assert close_to_others(listener, [MEMBER])
    with pytest.raises(PermissionError):
        listener.setsockopt(socket.SOL_SOCKET, 27, 0)  # SO_DETACH_FILTER
    assert not close_to_others(listener, [STRANGER])
    assert not answers(listener, STRANGER, HERE)


def test_no_members_shut_nobody_out(listener: socket.socket) -> None:
    assert not close_to_others(listener, [])
    assert answers(listener, STRANGER, HERE)


def test_what_a_library_opened_is_found_and_a_stranger_who_came_first_is_hung_up_on(
    listener: socket.socket,
) -> None:
    port = listener.getsockname()[1]
    found = own_listeners()
    assert port in {each.getsockname()[1] for each in found}
    for each in found:
        each.close()
    member, stranger = connected(MEMBER, HERE, port), connected(STRANGER, HERE, port)
    assert member is not None
    assert stranger is not None
    accepted = [listener.accept()[0], listener.accept()[0]]
    assert hang_up_on_others([port], [MEMBER]) == [STRANGER]
    assert stranger.recv(1) == b""
    with pytest.raises(TimeoutError):
        member.recv(1)
    for each in (member, stranger, *accepted):
        each.close()


def test_strangers_at_a_ring_s_port_never_reach_the_ring() -> None:
    port = free_port()
    held = hold_ring_port(HERE, port, [MEMBER])
    assert held is not None
    assert connected(MEMBER, HERE, port) is None, "nobody listens yet"
    early = connected(STRANGER, HERE, port)
    with closing(socket.socket()) as ring:
        ring.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        ring.bind((HERE, port))
        ring.listen(0)
        ring.settimeout(1)
        strangers = [connected(STRANGER, HERE, port) for _ in range(20)]
        member = connected(MEMBER, HERE, port)
        neighbour, (host, _) = ring.accept()
        assert host == MEMBER
        ring.settimeout(SOON_S)
        with pytest.raises(TimeoutError):
            ring.accept()
    assert held.strangers() == [STRANGER] * 21
    assert held.strangers() == []
    held.close()
    for each in (early, member, neighbour, *strangers):
        if each is not None:
            each.close()


def test_a_port_that_somebody_has_is_not_held() -> None:
    with closing(listening(HERE)) as taken:
        assert hold_ring_port(HERE, taken.getsockname()[1], [MEMBER]) is None


def free_port() -> int:
    with closing(listening(HERE)) as found:
        return int(found.getsockname()[1])
