"""What a heartbeat may carry."""

from pathlib import Path

import msgpack
import pytest

from jupiterd.daemon.node import Node
from jupiterd.rpc import peer_pb2
from tests.unit.daemon.test_greeter import by_precedence, greet
from tests.unit.daemon.two_nodes import lead, serving

READING = {"hardware": None, "load": {"cpu_percent": 7.0}}


async def linked(one: Node, other: Node) -> tuple[Node, Node]:
    stays, dissolves = by_precedence(one, other)
    await lead(stays)
    await greet(dissolves, stays)
    await greet(dissolves, stays)
    return stays, dissolves


@pytest.mark.parametrize(
    "telemetry",
    [
        b"\xc1 no msgpack",
        msgpack.packb([1, 2]),
        msgpack.packb({"load": {}}),
        msgpack.packb({"hardware": {"cores": "many"}}),
        msgpack.packb({"hardware": 3}),
    ],
)
async def test_telemetry_that_cannot_be_read_leaves_the_last_reading(
    tmp_path: Path, telemetry: bytes
) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        stays, dissolves = await linked(one, other)
        peer = dissolves.peers.require(stays.identity.node_id)
        good = msgpack.packb({**READING, "hardware": stays.hardware.to_plain()})
        for told in (good, telemetry):
            beat = peer_pb2.Heartbeat(cluster=dissolves.journal.cluster, telemetry=told)
            dissolves.pulse.heard(stays.identity.node_id, beat)
        assert peer.hardware == stays.hardware
        assert peer.telemetry["load"] == {"cpu_percent": 7.0}
