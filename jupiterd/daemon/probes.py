"""Preflight on this node: a listener for others to reach, and the proof that we reach theirs.

Owns the listeners for the short time of a preflight. Doesn't know gangs.
"""

import asyncio
import contextlib

from jupiterd.errors import BadRouteError, JupiterError
from jupiterd.gang.routes import free_port, listen_probe, prove
from jupiterd.net.interfaces import source_address_toward
from jupiterd.net.scopes import is_link_local
from jupiterd.ports import Address
from jupiterd.rpc import peer_pb2

PROBE_LIFE_S = 15.0


class Probes:
    """The listeners that are open just now; each closes by itself."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self._group = group

    async def open(self, request: peer_pb2.OpenProbeRequest) -> peer_pb2.OpenProbeReply:
        """Listen on the address that leads toward the given host."""
        try:
            host, interface = source_address_toward(request.toward)
            _require_routable(host)
            reserved = free_port(host) if request.reserve else 0
            server, port = await listen_probe(host)
        except JupiterError as error:
            failure = peer_pb2.Failure(code=error.code, message=error.message, hint=error.hint)
            return peer_pb2.OpenProbeReply(failure=failure)
        self._group.create_task(self._close_later(server), name="probe")
        return peer_pb2.OpenProbeReply(
            host=host, port=port, interface=interface, reserved_port=reserved
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

    @staticmethod
    async def _close_later(server: asyncio.Server) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(PROBE_LIFE_S)
        server.close()


def _require_routable(host: str) -> None:
    """Refuse an address that each member of a gang would have to write in its own way."""
    if is_link_local(host):
        raise BadRouteError(
            f"{host} is an address for its own link alone, and a gang needs one that is the same "
            "for all its members",
            "give the machines IPv4 addresses, or IPv6 ones that a router hands out",
        )
