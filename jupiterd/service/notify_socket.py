"""The socket on which systemd hears how its service is: sd_notify(3), as datagrams.

Owns the form of what is told, and finding out whether anybody listens. Doesn't know when anything
is told.
"""

import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Self

SOCKET_VARIABLE = "NOTIFY_SOCKET"
WATCHDOG_VARIABLE = "WATCHDOG_USEC"
WATCHED_VARIABLE = "WATCHDOG_PID"


class NotifySocket:
    """Where somebody listens who has started this process as a service."""

    def __init__(self, address: str) -> None:
        """Take a path, or an abstract address that begins with @."""
        self._address = f"\0{address[1:]}" if address.startswith("@") else address

    @classmethod
    def found_in(cls, environment: Mapping[str, str]) -> Self | None:
        """Return the one that the environment names; None where there is none of a kind we know."""
        address = environment.get(SOCKET_VARIABLE, "")
        return cls(address) if address[:1] in ("/", "@") else None

    def tell(self, **said: str | int) -> None:
        """Say it, such as READY=1; nobody may be listening any more, and nothing waits for them."""
        lines = "\n".join(f"{name}={_one_line(value)}" for name, value in said.items())
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as way:
            way.settimeout(0)
            way.sendto(lines.encode(), self._address)


def watchdog_s(environment: Mapping[str, str]) -> float | None:
    """Return within what time a sign of life is wanted again and again; None: none is."""
    told, watched = environment.get(WATCHDOG_VARIABLE, ""), environment.get(WATCHED_VARIABLE, "")
    is_other = watched not in ("", str(os.getpid()))
    return int(told) / 1e6 if told.isdecimal() and int(told) and not is_other else None


def _one_line(value: str | int) -> str:
    return " ".join(str(value).split())
