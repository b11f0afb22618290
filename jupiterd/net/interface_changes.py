"""Watches for messages of the system that an interface or an address appeared or vanished.

Owns the socket on which Linux sends them. Doesn't know what changed: the caller reads the
interfaces itself. On a system that sends none (macOS, a sandbox), every answer is "maybe".
"""

import socket
import sys
from contextlib import suppress
from typing import Final

_LINKS: Final = 0x1
_IPV4_ADDRESSES: Final = 0x10
_IPV6_ADDRESSES: Final = 0x100
"""Multicast groups of rtnetlink (RTMGRP_LINK, RTMGRP_IPV4_IFADDR, RTMGRP_IPV6_IFADDR)."""

_MESSAGE_BYTES: Final = 64 << 10


class InterfaceChanges:
    """Tells whether the system reported a change since the last call."""

    def __init__(self) -> None:
        self._notices = _listening()

    def may_have_come(self) -> bool:
        """Return whether anything may have changed since the last call, or since the start."""
        if self._notices is None:
            return True
        has_come = False
        try:
            while self._notices.recv(_MESSAGE_BYTES):
                has_come = True
        except BlockingIOError:
            return has_come
        except OSError:  # the socket's buffer overflowed
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
