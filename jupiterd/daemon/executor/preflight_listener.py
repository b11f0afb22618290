"""Preflight on this node: a listener for others to reach, and the proof that we reach theirs.

Owns the listeners for the short time of a preflight. Doesn't know gangs.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable

from jupiterd.cluster.planning.gang_hosts import MAX_HOSTS_OF_ONE
from jupiterd.errors import BadRouteError, JupiterError
from jupiterd.net.interfaces import (
    addresses_of,
    every_address,
    seen_from_here,
    source_address_toward,
)
from jupiterd.net.scopes import is_link_local, without_scope
from jupiterd.ports import Address
from jupiterd.processes.routes import free_port, listen_probe, prove
from jupiterd.rpc import peer_pb2

PROBE_LIFE_S = 15.0


class PreflightListener:
    """The listeners that are open just now; each closes by itself."""

    def __init__(
        self, group: asyncio.TaskGroup, paths: Callable[[], Iterable[Address]] = tuple
    ) -> None:
        """Listen for nobody yet; `paths`: the addresses at which others are known to answer."""
        self._group = group
        self._paths = paths

    async def open(self, request: peer_pb2.OpenProbeRequest) -> peer_pb2.OpenProbeReply:
        """Listen on the address that leads toward the given host."""
        try:
            host, interface = source_address_toward(self._as_seen_from_here(request.toward))
            _require_usable(host, interface)
            reserved = free_port(host) if request.reserve else 0
            server, port = await listen_probe(host)
        except JupiterError as error:
            failure = peer_pb2.Failure(code=error.code, message=error.message, hint=error.hint)
            return peer_pb2.OpenProbeReply(failure=failure)
        self._group.create_task(self._close_later(server), name="probe")
        return peer_pb2.OpenProbeReply(
            host=host,
            port=port,
            interface=interface,
            reserved_port=reserved,
            addresses=await asyncio.to_thread(_own_hosts, host),
        )

    @staticmethod
    async def prove(request: peer_pb2.ProbeRoutesRequest) -> peer_pb2.ProbeRoutesReply:
        """Connect to each target and say which can't be reached."""
        targets = [
            Address(host.strip("[]"), int(port))
            for host, _, port in (target.rpartition(":") for target in request.targets)
        ]
        found = [(number, error) for number, error in enumerate(await prove(targets)) if error]
        failures = [
            peer_pb2.Failure(code=error.code, message=error.message, hint=error.hint)
            for _, error in found
        ]
        return peer_pb2.ProbeRoutesReply(
            failures=failures, unreached=[number for number, _ in found]
        )

    def _as_seen_from_here(self, host: str) -> str:
        """Return a link-local address with the link of ours that leads there."""
        bare = without_scope(host)
        if not is_link_local(bare):
            return host
        paths = (address.host for address in self._paths() if without_scope(address.host) == bare)
        tried = (address.host for address in seen_from_here(Address(bare, 1)))
        return next(paths, next(tried, host))

    @staticmethod
    async def _close_later(server: asyncio.Server) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(PROBE_LIFE_S)
        server.close()


def _own_hosts(host: str) -> list[str]:
    """Return where connections of this machine's ranks may come from; nothing if nobody can say."""
    with contextlib.suppress(OSError):
        return list(dict.fromkeys([host, *every_address()]))[:MAX_HOSTS_OF_ONE]
    return []


def _require_usable(host: str, interface: str) -> None:
    """Refuse an address that ranks wouldn't take: they take the first that their interface has."""
    others = [address for address in addresses_of(interface) if not is_link_local(address)]
    if is_link_local(host) and others:
        raise BadRouteError(
            f"{host} is an address for its own link alone, and ranks would take {others[0]}, at "
            "which the others can't be reached",
            "give the machines IPv4 addresses of one network, each its own",
        )
