"""When this machine's addresses have become others, and have stayed so for a moment.

Owns the comparison of readings, damped, so that a cable with a loose contact isn't followed all the
time. Doesn't know how readings are taken, or what is done then.
"""

from collections.abc import Callable, Iterable
from typing import Final

LOOK_INTERVAL_S: Final = 1.0

Reading = frozenset[tuple[str, str]]
"""Interface and address, for each address of an interface that is up."""


class InterfaceWatch:
    """Tells of a change once it has lasted from one look to the next.

    What has come back to what it was counts as a change too: in between, the system has forgotten
    which multicast groups we listen to.
    """

    def __init__(self, read: Callable[[], Reading]) -> None:
        self._read = read
        self._last = read()
        self._is_restless = False

    def has_changed(self) -> bool:
        """Take a reading; say whether there was a change and it has lasted since the last one."""
        try:
            reading = self._read()
        except OSError:  # no file may be left to ask the system with
            return False
        is_settled = reading == self._last
        has_changed = self._is_restless and is_settled
        self._is_restless = not is_settled
        self._last = reading
        return has_changed


class LostAddresses:
    """Tells which of our own addresses are gone: missing at this look and at the one before."""

    def __init__(self, read: Callable[[], Reading]) -> None:
        self._read = read
        self._missing: frozenset[str] = frozenset()

    def among(self, addresses: Iterable[str]) -> frozenset[str]:
        """Take a reading; return those of these addresses that are gone."""
        try:
            here = {address for _, address in self._read()}
        except OSError:  # what can't be seen isn't gone
            return frozenset()
        missing = frozenset(addresses) - here
        lost = missing & self._missing
        self._missing = missing
        return lost
