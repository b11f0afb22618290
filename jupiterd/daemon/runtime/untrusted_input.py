"""Sanitizes texts and addresses that other nodes report of themselves.

Owns the checks that both pass before anything stores them. Doesn't know who sent them, or what they
are for.
"""

import ipaddress
import re
from collections.abc import Iterable
from itertools import islice

from jupiterd.daemon.runtime.address_text import parse_address
from jupiterd.formats import printable
from jupiterd.net.interfaces import seen_from_here
from jupiterd.ports import Address

MAX_NAME_CHARACTERS = 64
MAX_REASON_CHARACTERS = 300
MAX_ADDRESS_CHARACTERS = 80
MAX_ADDRESSES_OF_ONE = 8

_ID = re.compile("[0-9a-f]{32}")


def sanitized_text(text: str, max_characters: int = MAX_NAME_CHARACTERS) -> str:
    """Return the text as one printable line, cut to `max_characters`; no terminal codes."""
    return printable(text[:max_characters])


def is_id(text: str) -> bool:
    """Say whether this can be the id of a node or a cluster."""
    return _ID.fullmatch(text) is not None


def sanitized_address(text: str) -> Address:
    """Read IP:PORT; raises ValueError where it isn't that.

    Host names aren't taken from others: looking one up may hold a thread for many seconds.
    """
    if len(text) > MAX_ADDRESS_CHARACTERS or not text.isprintable():
        raise ValueError("not an address")
    address = parse_address(text)
    ipaddress.ip_address(address.host)
    return address


def sanitized_addresses(texts: Iterable[str], limit: int = MAX_ADDRESSES_OF_ONE) -> list[Address]:
    """Return the valid addresses among the first `limit` texts."""
    return [address for text in islice(texts, limit) for address in _read(text)]


def dialable_addresses(texts: Iterable[str], limit: int = MAX_ADDRESSES_OF_ONE) -> list[Address]:
    """Return the addresses to dial: a link-local one once for each of this node's interfaces."""
    return [
        seen for address in sanitized_addresses(texts, limit) for seen in seen_from_here(address)
    ]


def sanitized_port(number: int) -> int:
    """Return a reported port; 0 where it isn't from 1 to 65535."""
    return number if 0 < number < 65536 else 0


def _read(text: str) -> tuple[Address, ...]:
    try:
        return (sanitized_address(text),)
    except ValueError:
        return ()
