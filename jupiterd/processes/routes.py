"""Proves that the members of a gang can reach each other, before anything is launched.

Owns the listeners, the connections, and the error message that names a bad route. Doesn't know
gangs or the caller. A proof never uses the port of the gang itself.
"""

import asyncio
import errno
import os
import socket
from collections.abc import Iterable
from typing import Any

import psutil

from jupiterd.errors import BadRouteError, DiskFullError, JupiterError
from jupiterd.ports import Address

PROBE_TIMEOUT_S = 2.0
BACKLOG = 128
_ANY_PORT = 9


async def listen_probe(host: str) -> tuple[asyncio.Server, int]:
    """Return a listener on `host` that closes every connection, and its port.

    The caller closes the listener.

    Raises:
        BadRouteError: this machine doesn't have the address.
    """
    try:
        server = await asyncio.start_server(_hang_up, host, 0)
    except OSError as error:
        raise _cannot_listen(host, error) from error
    return server, int(server.sockets[0].getsockname()[1])


async def prove(
    targets: Iterable[Address], timeout_s: float = PROBE_TIMEOUT_S
) -> list[BadRouteError | None]:
    """Connect to every target at once; return an error for each unreachable one, else None."""
    return await asyncio.gather(*(_prove_one(target, timeout_s) for target in targets))


def bind_listener(host: str, port: int = 0) -> socket.socket:
    """Return a listening socket on a port of `host`; port 0 lets the system choose a free one.

    Raises:
        BadRouteError: this machine doesn't have the address, or the port is taken.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.bind(_name(host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise _cannot_listen(host, error) from error
    return listener


def free_port(host: str) -> int:
    """Return a port of `host` that is free now, for a gang that binds it itself.

    Raises:
        BadRouteError: this machine doesn't have the address.
    """
    with bind_listener(host) as listener:
        return int(listener.getsockname()[1])


async def _hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def _prove_one(target: Address, timeout_s: float) -> BadRouteError | None:
    try:
        async with asyncio.timeout(timeout_s):
            _, writer = await asyncio.open_connection(target.host, target.port)
    except TimeoutError:
        why = f"no answer within {timeout_s:g} s"
    except OSError as error:
        why = os.strerror(error.errno).lower() if error.errno else str(error)
    else:
        writer.close()
        return None
    return BadRouteError(
        f"{socket.gethostname()} can't reach {target} from {_route_to(target)}: {why}"
    )


def _route_to(target: Address) -> str:
    """Return the interface and source address of packets to the target; sends nothing."""
    family = socket.AF_INET6 if ":" in target.host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as asker:
            asker.connect(_name(target.host, _ANY_PORT))
            address = str(asker.getsockname()[0])
    except OSError:
        return "any interface"
    for name, entries in psutil.net_if_addrs().items():
        if any(entry.address.partition("%")[0] == address for entry in entries):
            return f"{name} ({address})"
    return address


def _name(host: str, port: int) -> tuple[Any, ...]:
    """Return a socket address with all its parts: host and port alone would lose the scope."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    flags = socket.AI_NUMERICHOST
    return socket.getaddrinfo(host, port, family, socket.SOCK_STREAM, flags=flags)[0][4]


def _cannot_listen(host: str, error: OSError) -> JupiterError:
    if error.errno == errno.ENOSPC:
        return DiskFullError("the system has no room for another socket")
    return BadRouteError(
        f"{socket.gethostname()} can't listen on {host}: {error.strerror}",
        "the address may have changed; jupiterctl node list shows the ones in use",
    )
