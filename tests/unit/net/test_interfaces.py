import pytest

from jupiterd.errors import BadRouteError
from jupiterd.net.interfaces import (
    addresses_by_interface,
    announced_source_toward,
    interface_of,
    link_scopes,
    local_addresses,
    missing_of,
    seen_from_here,
    source_address_toward,
)
from jupiterd.ports import Address


def test_the_way_to_loopback_leaves_from_loopback() -> None:
    address, interface = source_address_toward("127.0.0.1")
    assert address == "127.0.0.1"
    assert interface == interface_of("127.0.0.1") != ""


def test_a_host_that_cannot_be_reached_is_named() -> None:
    with pytest.raises(BadRouteError, match=r"no route from this machine to 256\.1\.1\.1"):
        source_address_toward("256.1.1.1")


def test_an_address_of_another_machine_belongs_to_no_interface() -> None:
    assert interface_of("203.0.113.7") == ""


def test_loopback_only_means_loopback_only() -> None:
    assert local_addresses(loopback_only=True) == ["127.0.0.1"]


def test_every_address_told_to_others_is_one_of_ours() -> None:
    addresses = local_addresses(loopback_only=False)
    assert addresses
    assert all(interface_of(address) for address in addresses)


def test_an_interface_that_is_not_there_leaves_loopback() -> None:
    assert local_addresses(loopback_only=False, interfaces=("none0",)) == ["127.0.0.1"]


def test_an_interface_that_is_not_there_is_named_beside_those_that_are() -> None:
    assert missing_of(("none0", interface_of("127.0.0.1"))).startswith(
        "no interface is called none0; here are "
    )
    assert missing_of((interface_of("127.0.0.1"),)) == missing_of(()) == ""


def test_loopback_and_names_have_no_source_that_is_told() -> None:
    assert announced_source_toward("127.0.0.1") == ""
    assert announced_source_toward("::1") == ""
    assert announced_source_toward("localhost") == ""


def test_what_is_told_lies_on_an_interface_that_is_up() -> None:
    assert all(interface_of(address) == name for name, address in addresses_by_interface())


def test_interfaces_that_cannot_be_read_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable() -> None:
        raise OSError("too many open files")

    monkeypatch.setattr("psutil.net_if_addrs", unreadable)
    assert interface_of("127.0.0.1") == ""
    assert link_scopes() == []
    assert seen_from_here(Address("fe80::1", 1)) == []
