"""What is public, on every Python alike."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.address_ranges import is_link_local, is_loopback, is_multicast, is_public

PUBLIC = (
    *("8.8.8.8", "172.32.0.1", "100.128.0.1", "192.0.1.1", "2606:4700::1111", "2a00:1450::1"),
    *("64:ff9b::8.8.8.8", "::ffff:8.8.8.8", "2002:808:808::1"),
    "2001:0:4136:e378:8000:63bf:f7f7:f7f7",
)
"""Those of the last two lines are wrapped; the very last one is a Teredo client's."""

OTHERS = (
    *("10.1.2.3", "172.31.255.255", "192.168.0.1", "100.64.0.1", "169.254.169.254", "127.8.8.8"),
    *("0.0.0.0", "192.0.0.100", "192.88.99.1", "198.19.0.1", "224.0.0.251", "255.255.255.255"),
    *("::", "::1", "::8.8.8.8", "fc00::1", "fe80::1", "fe80::1%eth0", "ff02::fb", "fec0::1"),
    *("64:ff9b:1::8.8.8.8", "100::1", "5f00::1", "3fff::1", "2001:db8::1", "2001:2::1"),
    *("64:ff9b::10.0.0.1", "::ffff:127.0.0.1", "2002:a00:1::1", "2001:0:4136:e378::f5ff:fffe"),
    *("2606:4700::1%eth0", "example.org", "", "08.8.8.8", "8.8.8"),
)


@pytest.mark.parametrize("address", PUBLIC)
def test_what_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("address", OTHERS)
def test_what_is_not(address: str) -> None:
    assert not is_public(address)


@given(st.ip_addresses(v=4))
def test_what_python_takes_for_private_is_never_public(address: ipaddress.IPv4Address) -> None:
    assert not (is_public(str(address)) and address.is_private)


def test_the_other_kinds() -> None:
    assert is_loopback("127.0.0.53")
    assert is_loopback("::1")
    assert not is_loopback("localhost")
    assert is_link_local("169.254.1.1")
    assert is_link_local("fe80::1%eth0")
    assert not is_link_local("fec0::1")
    assert is_multicast("239.1.1.1")
    assert is_multicast("ff02::1")
    assert not is_multicast("223.255.255.255")
