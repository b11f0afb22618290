"""`check.links`: measures every path from this node to one other, or has another node do so.

Owns their order, and reporting bandwidth to the other end. Doesn't know how bytes are counted
(`bandwidth_probe`), or what follows for the choice between the paths (`cluster.links`).
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import grpc.aio

from jupiterd.daemon.links.bandwidth_probe import BandwidthProbe, bits_per_s_in, bits_per_s_out
from jupiterd.daemon.links.path_monitor import ANSWER_TIMEOUT_S
from jupiterd.daemon.links.peers import Peer, Peers
from jupiterd.daemon.runtime.address_text import parse_address
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.errors import from_wire
from jupiterd.ids import NodeId
from jupiterd.net.connect_time import connect_time_s
from jupiterd.net.scopes import without_scope
from jupiterd.ports import Address
from jupiterd.protocol.call_errors import from_rpc
from jupiterd.protocol.commands.check_commands import CheckLinks
from jupiterd.rpc import peer_pb2
from jupiterd.rpc.peer_pb2_grpc import PeerStub

HANDSHAKES: Final = 10
LONGEST_S: Final = 120.0
"""Enough for eight paths that all answer as late as they may."""

MAX_PATHS: Final = 64

FIGURES: Final = ("rtt_ms", "out_mbit_per_s", "in_mbit_per_s")
PATH_FIELDS: Final = (
    "target", "source", "interface", "kind", "active", "answers", *FIGURES, "note",
)  # fmt: skip

REPORT_TIMEOUT_S: Final = 2.0

Row = dict[str, Any]


class LinkMeasurement:
    """Measures this node's links, one at a time: two measurements would slow each other."""

    def __init__(
        self, own: NodeId, peers: Peers, measuring: BandwidthProbe, port: Callable[[], int]
    ) -> None:
        """`port` says where our Peer service answers."""
        self._own, self._peers = own, peers
        self._measuring, self._port = measuring, port

    async def check(self, command: CheckLinks) -> Row:
        """Measure each path to a node in turn, from here or from another member.

        Raises:
            PeerUnreachableError: there is no link to it.
            ConflictError: the node that measures does so already, or is measured.
        """
        target = NodeId(command.node)
        asker = NodeId(command.asker or self._own)
        if asker != self._own:
            return await self._measured_there(asker, target)
        return await self._measured_here(target)

    async def paths_to(self, target: NodeId) -> list[peer_pb2.MeasuredPath]:
        """Measure each path from here to a node, for another member; raises what `check` does."""
        rows = (await self._measured_here(target))["paths"]
        return [
            peer_pb2.MeasuredPath(**{key: row[key] for key in PATH_FIELDS if row[key] is not None})
            for row in rows
        ]

    async def _measured_there(self, asker: NodeId, target: NodeId) -> Row:
        peer = self._peers.require(asker)
        request = peer_pb2.MeasurePathsRequest(node=target)
        try:
            with peer.channels.in_use() as channels:
                reply = await channels.control.MeasureWays(request, timeout=LONGEST_S)
        except grpc.aio.AioRpcError as error:
            raise from_rpc(error, peer.name) from error
        if reply.failure.code:
            raise from_wire(reply.failure.code, reply.failure.message, reply.failure.hint)
        return {"node": target, "paths": [_row_of(path) for path in reply.paths[:MAX_PATHS]]}

    async def _measured_here(self, target: NodeId) -> Row:
        peer = self._peers.require(target)
        with self._measuring.turn(LONGEST_S):
            rows = [await self._measured(peer, row) for row in peer.links.to_plain(now_s())]
        for row in rows:
            row["active"] = row["target"] == peer.links.active
        return {"node": peer.node, "name": peer.name, "paths": rows}

    async def _measured(self, peer: Peer, known: Mapping[str, Any]) -> Row:
        row: Row = {key: known[key] for key in ("target", "source", "interface", "kind", "active")}
        rtt_s = await _round_trip_s(parse_address(row["target"]))
        row |= {"answers": rtt_s is not None, "rtt_ms": None}
        row |= {"out_mbit_per_s": None, "in_mbit_per_s": None, "note": ""}
        if rtt_s is None:
            peer.links.missed(now_s(), row["target"])
            return row
        row["rtt_ms"] = round(rtt_s * 1000, 3)
        peer.links.answered(now_s(), row["target"], rtt_s)
        try:
            await self._weigh(peer, row)
        except grpc.aio.AioRpcError as error:
            row["note"] = from_rpc(error, peer.name).message
        return row

    async def _weigh(self, peer: Peer, row: Row) -> None:
        """Measure both directions over a separate connection; report the slower to both ends."""
        channels = peer.channels.at(parse_address(row["target"]))
        try:
            incoming = await bits_per_s_in(channels.control)
            row["in_mbit_per_s"] = _mbit(incoming)
            outgoing = await bits_per_s_out(channels.control)
            row["out_mbit_per_s"] = _mbit(outgoing)
            if (slower := min(incoming, outgoing)) > 0.0:
                peer.links.measured(now_s(), row["target"], slower)
                await _report_bandwidth(channels.control, row["source"], self._port(), slower)
        finally:
            await channels.close()


def _row_of(path: peer_pb2.MeasuredPath) -> Row:
    """Return another node's measurement of one path as a row; figures that it lacks are None."""
    row: Row = {key: getattr(path, key) for key in PATH_FIELDS}
    return row | {key: None for key in FIGURES if not path.HasField(key)}


async def _round_trip_s(address: Address) -> float | None:
    """Return the median time of HANDSHAKES TCP handshakes in seconds; None: nobody answers."""
    took_s: list[float] = []
    for _ in range(HANDSHAKES):
        one_s = await connect_time_s(address, ANSWER_TIMEOUT_S)
        if one_s is not None:
            took_s.append(one_s)
        elif not took_s:
            return None
    return sorted(took_s)[len(took_s) // 2]


async def _report_bandwidth(peer: PeerStub, source: str, port: int, bits_per_s: float) -> None:
    """Send the bandwidth to the other end, which may be the one that chooses the path."""
    if source:
        where = Address(without_scope(source), port)
        request = peer_pb2.NotePathRequest(address=str(where), bits_per_s=bits_per_s)
        await peer.NotePath(request, timeout=REPORT_TIMEOUT_S)


def _mbit(bits_per_s: float) -> float | None:
    return round(bits_per_s / 1e6, 1) or None
