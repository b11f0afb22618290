"""Detects that this machine's addresses changed and then stayed the same for one look.

Owns the comparison of readings. It waits for two equal readings, so that a cable with a loose
contact doesn't cause a change at every look. Doesn't know how to take a reading, or what the caller
does after a change.
"""

from collections.abc import Callable, Iterable
from typing import Final

LOOK_INTERVAL_S: Final = 1.0

InterfaceAddresses = frozenset[tuple[str, str]]
"""(interface, address) for each address of an interface that is up."""


class InterfaceWatch:
    """Reports a change once two successive readings agree again.

    A return to the earlier addresses counts as a change too: in between, the system forgot the
    multicast groups that this node had joined.
    """

    def __init__(self, read: Callable[[], InterfaceAddresses]) -> None:
        self._read = read
        self._last = read()
        self._is_restless = False

    def has_changed(self) -> bool:
        """Take a reading; return whether a change has settled: this reading equals the last one."""
        try:
            reading = self._read()
        except OSError:  # the process may be out of file descriptors
            return False
        is_settled = reading == self._last
        has_changed = self._is_restless and is_settled
        self._is_restless = not is_settled
        self._last = reading
        return has_changed


class LostAddresses:
    """Reports which of this node's addresses are gone: missing in two successive readings."""

    def __init__(self, read: Callable[[], InterfaceAddresses]) -> None:
        self._read = read
        self._missing: frozenset[str] = frozenset()

    def among(self, addresses: Iterable[str]) -> frozenset[str]:
        """Take a reading; return which of these addresses are gone."""
        try:
            here = {address for _, address in self._read()}
        except OSError:  # a failed reading proves nothing
            return frozenset()
        missing = frozenset(addresses) - here
        lost = missing & self._missing
        self._missing = missing
        return lost
