"""Link-local addresses and their scopes."""

import socket

import pytest

from jupiterd.net import interfaces
from jupiterd.net.interfaces import interface_of, local_addresses, seen_from_here
from jupiterd.net.scopes import (
    host_in,
    is_link_local,
    with_named_scope,
    without_scope,
    without_scope_in,
)
from jupiterd.ports import Address

LOOPBACK_INTERFACE = socket.if_indextoname(1)


def test_only_ipv6_addresses_are_link_local() -> None:
    assert is_link_local("fe80::1")
    assert is_link_local("fe80::1%eth0")
    assert not any(map(is_link_local, ("fd00::1", "::1", "169.254.0.1", "fe80", "host")))


def test_a_scope_is_taken_away_for_others() -> None:
    assert without_scope("fe80::1%eth0") == "fe80::1"
    assert without_scope("host") == "host"
    assert without_scope_in("[fe80::1%eth0]:47470") == "[fe80::1]:47470"
    assert without_scope_in("192.0.2.1:47470") == "192.0.2.1:47470"


def test_the_number_of_an_interface_becomes_its_name() -> None:
    assert with_named_scope("fe80::1%1") == f"fe80::1%{LOOPBACK_INTERFACE}"
    assert with_named_scope("fe80::1%eth0") == "fe80::1%eth0"
    assert with_named_scope("fe80::1%99999999999") == "fe80::1", "there is no such interface"
    assert with_named_scope("fe80::1") == "fe80::1"


@pytest.mark.parametrize(
    ("text", "host"),
    [("[fe80::1%eth0]:1", "fe80::1%eth0"), ("192.0.2.1:1", "192.0.2.1"), ("host:1", "host")],
)
def test_the_host_of_an_address_is_read(text: str, host: str) -> None:
    assert host_in(text) == host


def test_a_link_local_address_is_tried_on_each_link_and_no_other_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(interfaces, "link_scopes", lambda: ["a", "b", "c", "d", "e"])
    tried = seen_from_here(Address("fe80::1", 1))
    assert [address.host for address in tried] == [f"fe80::1%{scope}" for scope in "abcd"]
    for host in ("fe80::1%eth7", "fd00::1", "192.0.2.1", "host"):
        assert seen_from_here(Address(host, 1)) == [Address(host, 1)]


def test_addresses_of_ours_are_told_best_interface_first(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = [
        ("docker0", "172.17.0.1"),
        ("docker0", "fe80::d%docker0"),
        ("wlan0", "192.0.2.9"),
        ("eth0", "fe80::1%eth0"),
        ("eth0", "2001:db8::1"),
        ("eth0", "192.0.2.1"),
        *[("eth0", f"2001:db8::{number}") for number in range(2, 9)],
    ]
    monkeypatch.setattr(interfaces, "addresses_by_interface", lambda _: ours)
    assert local_addresses(loopback_only=False) == [
        "192.0.2.1",
        "2001:db8::1",
        "2001:db8::2",
        "fe80::1%eth0",
        "192.0.2.9",
        "172.17.0.1",
    ]
    assert interfaces.link_scopes() == ["eth0"]
    assert interface_of("fe80::1%eth0") == "eth0"
