"""Programs for the kernel's packet filter that tell some senders from all others.

Owns their instructions (classic BPF). Pure; doesn't know sockets, or what becomes of a packet.

A program of a TCP socket sees a packet from its TCP header on, so the sender is read relative to
the network header. What reaches an IPv6 socket over IPv4 is an IPv4 packet there.
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

_NETWORK_HEADER: Final = 0x1_0000_0000 - 0x10_0000
"""SKF_NET_OFF, as the unsigned number that an instruction holds."""

_LOAD_WORD, _LOAD_BYTE, _SHIFT_RIGHT, _JUMP, _JUMP_IF_EQUAL, _RETURN = (
    0x20, 0x30, 0x74, 0x05, 0x15, 0x06,
)  # fmt: skip
_SENDER_V4, _SENDER_V6 = 12, 8
"""Where the sender stands in a network header, in bytes."""

PASS: Final = 0xFFFF_FFFF
DROP: Final = 0

MAX_ADDRESSES: Final = 400
"""Of IPv6 they fill nine tenths of the 4,096 instructions that a program may have."""


@dataclass(frozen=True)
class Instruction:
    """One instruction; jumps count the instructions that are passed over."""

    code: int
    if_true: int
    if_false: int
    operand: int

    def packed(self) -> bytes:
        """Return it as the kernel reads it (struct sock_filter)."""
        return struct.pack("=HBBI", self.code, self.if_true, self.if_false, self.operand)


def program_for(
    senders: Iterable[str], theirs: int = PASS, others: int = DROP
) -> list[Instruction]:
    """Return the program that answers packets of these senders so, and all others so.

    senders: IP addresses, with or without a scope; of IPv4 also in the form ::ffff:a.b.c.d

    Raises:
        ValueError: one is no IP address, or there are more than MAX_ADDRESSES.
    """
    addresses = sorted({plain_address(sender) for sender in senders}, key=str)
    if len(addresses) > MAX_ADDRESSES:
        raise ValueError(f"{len(addresses)} addresses are more than {MAX_ADDRESSES}")
    ipv4 = [address for address in addresses if isinstance(address, IPv4Address)]
    ipv6 = [address for address in addresses if isinstance(address, IPv6Address)]
    if_ipv4 = [*_compared(ipv4, _SENDER_V4, theirs), _answer(others)]
    return [
        Instruction(_LOAD_BYTE, 0, 0, _NETWORK_HEADER),
        Instruction(_SHIFT_RIGHT, 0, 0, 4),
        Instruction(_JUMP_IF_EQUAL, 1, 0, 4),
        Instruction(_JUMP, 0, 0, len(if_ipv4)),
        *if_ipv4,
        *_compared(ipv6, _SENDER_V6, theirs),
        _answer(others),
    ]


def plain_address(address: str) -> IPv4Address | IPv6Address:
    """Return the address as packets carry it: without a scope, IPv4 as such.

    Raises:
        ValueError: it is none.
    """
    found = ip_address(address.partition("%")[0])
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return mapped or found


def _compared(
    addresses: Sequence[IPv4Address | IPv6Address], offset: int, theirs: int
) -> Iterable[Instruction]:
    """Yield, for each address, the comparison of its words and the answer where all are equal."""
    for address in addresses:
        words = struct.unpack(f">{len(address.packed) // 4}I", address.packed)
        for number, word in enumerate(words):
            after = 2 * (len(words) - number - 1) + 1  # what is left of this address
            yield Instruction(_LOAD_WORD, 0, 0, _NETWORK_HEADER + offset + 4 * number)
            yield Instruction(_JUMP_IF_EQUAL, 0, after, word)
        yield _answer(theirs)


def _answer(value: int) -> Instruction:
    return Instruction(_RETURN, 0, 0, value)
