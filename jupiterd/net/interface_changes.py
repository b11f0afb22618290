"""Whether the system has said that an interface or an address has come or gone.

Owns the socket on which Linux says so. Doesn't know what has changed: whoever asks looks for
itself. Where the system says nothing (macOS, a sandbox), there may always be news.
"""

import socket
import sys
from contextlib import suppress
from typing import Final

_LINKS: Final = 0x1
_IPV4_ADDRESSES: Final = 0x10
_IPV6_ADDRESSES: Final = 0x100
"""Groups of rtnetlink."""

_MESSAGE_BYTES: Final = 64 << 10


class InterfaceChanges:
    """What has been said since the last question."""

    def __init__(self) -> None:
        self._notices = _listening()

    def may_have_come(self) -> bool:
        """Say whether anything can have changed since the last question, or since the start."""
        if self._notices is None:
            return True
        has_come = False
        try:
            while self._notices.recv(_MESSAGE_BYTES):
                has_come = True
        except BlockingIOError:
            return has_come
        except OSError:  # more was said than the socket holds
            return True
        return True


def _listening() -> socket.socket | None:
    if sys.platform != "linux":
        return None
    with suppress(OSError):
        notices = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        try:
            notices.settimeout(0)
            notices.bind((0, _LINKS | _IPV4_ADDRESSES | _IPV6_ADDRESSES))
        except OSError:
            notices.close()
            raise
        return notices
    return None
