"""The programs, run by an interpreter that knows the instructions they are made of."""

import struct
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.source_filter.program import (
    DROP,
    MAX_ADDRESSES,
    PASS,
    Instruction,
    plain_address,
    program_for,
)

KERNELS_LIMIT = 4096

ipv4, ipv6 = st.integers(0, 2**32 - 1).map(IPv4Address), st.integers(0, 2**128 - 1).map(IPv6Address)
near = st.integers(0, 7).map(lambda low: IPv6Address((0xFE80 << 112) + (low << 30)))
addresses = st.one_of(ipv4, ipv6, near)


def network_header(sender: IPv4Address | IPv6Address) -> bytes:
    """Return what stands before a TCP header that comes from there."""
    if isinstance(sender, IPv4Address):
        return b"\x45" + bytes(11) + sender.packed + bytes(4)
    return b"\x60" + bytes(7) + sender.packed + bytes(16)


def answer(program: Sequence[Instruction], header: bytes) -> int:
    """Run a program as the kernel does, and return what it returns."""
    place, value = 0, 0
    while True:
        code, if_true, if_false, operand = struct.unpack("=HBBI", program[place].packed())
        place += 1
        offset = operand - (0x1_0000_0000 - 0x10_0000)
        match code:
            case 0x30:
                value = header[offset]
            case 0x20:
                (value,) = struct.unpack_from(">I", header, offset)
            case 0x74:
                value >>= operand
            case 0x05:
                place += operand
            case 0x15:
                place += if_true if value == operand else if_false
            case 0x06:
                return operand
            case _:
                raise AssertionError(f"instruction {code:#x}")


@given(st.sets(addresses, max_size=40), addresses)
def test_the_named_senders_pass_and_nobody_else(
    senders: set[IPv4Address | IPv6Address], other: IPv4Address | IPv6Address
) -> None:
    program = program_for(map(str, senders))
    for sender in senders:
        assert answer(program, network_header(plain_address(str(sender)))) == PASS
    known = {plain_address(str(sender)) for sender in senders}
    assert (answer(program, network_header(other)) == PASS) == (plain_address(str(other)) in known)


def test_each_kind_may_be_answered_as_one_likes() -> None:
    program = program_for(["10.0.0.1"], theirs=1, others=0)
    assert answer(program, network_header(IPv4Address("10.0.0.1"))) == 1
    assert answer(program, network_header(IPv4Address("10.0.0.2"))) == 0
    assert answer(program_for([]), network_header(IPv6Address("::1"))) == DROP


def test_an_address_is_the_same_however_it_is_written() -> None:
    assert plain_address("fe80::1%eth0") == IPv6Address("fe80::1")
    assert plain_address("::ffff:10.0.0.1") == IPv4Address("10.0.0.1")
    assert len(program_for(["10.0.0.1", "::ffff:10.0.0.1"])) == len(program_for(["10.0.0.1"]))


def test_a_program_never_grows_beyond_what_a_kernel_takes() -> None:
    most = [str(IPv6Address(number << 64)) for number in range(MAX_ADDRESSES)]
    assert len(program_for(most)) <= KERNELS_LIMIT
    with pytest.raises(ValueError, match="more than"):
        program_for([*most, "::1"])
    with pytest.raises(ValueError, match="does not appear"):
        program_for(["node-1.local"])
