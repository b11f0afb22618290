"""The address that a call really comes from."""

import pytest

from jupiterd.ids import NodeId
from jupiterd.net.open_port.callers import MAX_ENDED, MAX_HOSTS_OF_ONE, MAX_MEMBERS, Callers

PEER = "ipv4:127.0.0.1:50000"


def test_a_call_that_the_front_passes_on_comes_from_the_other_end() -> None:
    callers = Callers()
    with callers.known(50000, "fe80::1%eth0"):
        assert callers.host_of(PEER) == "fe80::1%eth0"
    assert callers.host_of(PEER) == "fe80::1%eth0", "its last call may still be answered"
    with callers.known(50000, "10.0.0.9"):
        assert callers.host_of(PEER) == "10.0.0.9"


@pytest.mark.parametrize(
    ("peer", "host"),
    [
        ("ipv4:10.0.0.1:4711", "10.0.0.1"),
        ("ipv6:%5B::1%5D:46350", "::1"),
        ("ipv6:[2001:db8::1]:46350", "2001:db8::1"),
        ("unix:/tmp/socket", ""),
        ("", ""),
    ],
)
def test_any_other_call_comes_from_where_grpc_says(peer: str, host: str) -> None:
    assert Callers().host_of(peer) == host


def test_a_connection_is_known_to_have_asked_something() -> None:
    callers = Callers()
    with callers.known(50000, "10.0.0.9") as caller:
        callers.note_call("ipv4:127.0.0.1:50001")
        assert not caller.has_called
        callers.note_call(PEER)
        assert caller.has_called


def test_what_has_ended_is_forgotten_in_the_end() -> None:
    callers = Callers()
    for port in range(50000, 50000 + 2 * MAX_ENDED):
        with callers.known(port, "10.0.0.9"):
            pass
    assert len(callers._ended) == MAX_ENDED
    assert callers.host_of(PEER) == "127.0.0.1"


def test_the_last_addresses_of_who_is_a_member_are_told() -> None:
    callers, who, other = Callers(), NodeId("a" * 32), NodeId("b" * 32)
    for number in [0, *range(MAX_HOSTS_OF_ONE), 0]:
        with callers.known(50000, f"10.0.0.{number}"):
            callers.note_member(PEER, who)
    with callers.known(50000, "10.0.1.1"):
        callers.note_member(PEER, other)
    callers.note_member("ipv4:10.0.0.99:4711", who)  # not through the front
    assert list(callers.hosts(lambda node: node == who)) == [
        f"10.0.0.{number}" for number in [*range(1, MAX_HOSTS_OF_ONE), 0]
    ]
    with callers.known(50000, "10.0.2.2"):
        callers.note_member(PEER, who)
        assert "10.0.0.1" not in list(callers.hosts(lambda _: True))
        for number in range(MAX_MEMBERS):
            callers.note_member(PEER, NodeId(f"{number:032x}"))
    assert set(callers.hosts(lambda _: True)) == {"10.0.2.2"}
