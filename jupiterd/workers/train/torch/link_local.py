"""A store for ranks that meet at link-local IPv6 addresses, each with its own number for the link.

Owns reading such an address as this machine would write it. Doesn't know where a store keeps what
it is given. gloo tells the others its whole socket address, with the number of the interface on
the machine that wrote it; another machine's interface has another number, and connecting with the
wrong one fails.
"""

import socket
import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from torch.distributed import Store  # pyright: ignore[reportPrivateImportUsage]

LINK_LOCAL: Final = b"\xfe\x80" + bytes(6)
"""What each such address begins with."""

ADDRESS_BYTES: Final = 16
SCOPE_BYTES: Final = 4
"""The interface's number follows the address, in the order of this machine's bytes."""


def on_link(value: bytes, number: int) -> bytes:
    """Return what a rank has told, with our interface's number after each link-local address."""
    seen, at = bytearray(value), value.find(LINK_LOCAL)
    while 0 <= at <= len(seen) - ADDRESS_BYTES - SCOPE_BYTES:
        end = at + ADDRESS_BYTES + SCOPE_BYTES
        seen[end - SCOPE_BYTES : end] = number.to_bytes(SCOPE_BYTES, sys.byteorder)
        at = value.find(LINK_LOCAL, end)
    return bytes(seen)


def read_on_link(store: Store, host: str) -> Store:
    """Return a store for ranks that meet at `host`, as this machine writes it: fe80::1%eth0."""
    _, _, interface = host.partition("%")
    return LinkLocalStore(store, socket.if_nametoindex(interface)) if interface else store


class LinkLocalStore(Store):
    """Another store, whose addresses are read as those of one link of this machine."""

    def __init__(self, inner: Store, number: int) -> None:
        """Stand before `inner`; number: that of the link's interface here."""
        super().__init__()
        self._inner: Any = inner  # its types say less than it takes
        self._number = number

    def set(self, key: str, value: str | bytes) -> None:
        """Keep a value."""
        self._inner.set(key, value)

    def get(self, key: str) -> bytes:
        """Return a value once it is there."""
        return on_link(self._inner.get(key), self._number)

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        """Wait until all of these are there."""
        self._inner.wait(keys, *([] if timeout is None else [timeout]))

    def add(self, key: str, value: int) -> int:
        """Add to a number, and return the sum."""
        return self._inner.add(key, value)

    def compare_set(
        self, key: str, expected_value: str | bytes, desired_value: str | bytes
    ) -> bytes:
        """Replace a value where it is as expected; return the one that is there then."""
        found = self._inner.compare_set(key, expected_value, desired_value)
        return on_link(found, self._number)

    def check(self, keys: list[str]) -> bool:
        """Say whether all of these are there."""
        return self._inner.check(keys)

    def delete_key(self, key: str) -> bool:
        """Forget a value."""
        return self._inner.delete_key(key)

    def num_keys(self) -> int:
        """Return how many values there are."""
        return self._inner.num_keys()

    def multi_get(self, keys: list[str]) -> list[bytes]:
        """Return several values once they are there."""
        return [on_link(value, self._number) for value in self._inner.multi_get(keys)]

    def multi_set(self, keys: list[str], values: Sequence[str]) -> None:
        """Keep several values."""
        self._inner.multi_set(keys, list(values))

    def has_extended_api(self) -> bool:
        """Say that several can be asked for at once."""
        return True

    def set_timeout(self, timeout: timedelta) -> None:
        """Wait for so long from now on."""
        self._inner.set_timeout(timeout)

    deleteKey = delete_key  # noqa: N815 - what C++ calls
    getNumKeys = num_keys  # noqa: N815 - the same
