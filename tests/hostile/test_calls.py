"""Every call of every service, made by a stranger, a member, one that was removed, one that led."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from jupiterd.cluster.facts.facts import NodeAdmitted, NodeRemoved
from jupiterd.cluster.membership.call_rights import RIGHTS, CallerKind
from jupiterd.cluster.membership.presence import Beat, SaidGoodbye
from jupiterd.cluster.training.store_place import StorePlace
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.executor import gang_stores
from jupiterd.net.channels import PeerChannels
from jupiterd.net.identity import Identity
from jupiterd.protocol.call_errors import from_rpc
from jupiterd.rpc import artifact_pb2, peer_pb2, script_pb2, serving_pb2
from tests.support.daemon.two_nodes import address_of, found, serving
from tests.unit.net.conftest import named_identity

pytestmark = pytest.mark.net

FILES = {
    "Peer": peer_pb2,
    "Artifacts": artifact_pb2,
    "Scripts": script_pb2,
    "Serving": serving_pb2,
}
CALLS = [
    f"{service}.{method.name}"
    for service, file in FILES.items()
    for method in file.DESCRIPTOR.services_by_name[service].methods
]
SAID = {
    "Peer.RunWork": peer_pb2.WorkRequest(id="x", term=1, task="store", params=b"\x80"),
    "Peer.EndEpoch": peer_pb2.EndAttemptRequest(term=1, attempt=1),
    "Peer.UseStore": peer_pb2.StoreRequest(store="x", verb="count", within_s=1.0),
    "Peer.Command": peer_pb2.CommandRequest(verb="x", arguments_json="{}"),
}
"""What a call needs to get as far as its right."""
NOT_THEIRS = ("this node follows", "no rank in this attempt")
SOON_S = 2.0


def test_every_call_has_a_row_and_every_row_a_call() -> None:
    assert sorted(RIGHTS) == sorted(CALLS)


@asynccontextmanager
async def asked(folder: Path, *members: Identity, removed: Identity) -> AsyncIterator[Node]:
    """A node that these were let in to, and of which one was removed."""
    async with serving(folder, "one") as one:
        keys = (*members, removed)
        admissions = [NodeAdmitted(key.node_id, "x", key.certificate_pem, "") for key in keys]
        await found(one, facts=tuple(admissions))
        named = one.replica.state.roster.admissions_of(removed.node_id)
        await one.replica.append(1, [NodeRemoved(removed.node_id, named, {})])
        yield one


async def follow(node: Node, leader: Identity, term: int) -> None:
    """Let a node hear a leader, and obey it from then on."""
    node.heartbeats._handle(Beat(leader.node_id, term, leader.node_id))
    await node.heartbeats.followed.check(leader.node_id, term)


async def answer(channel: Any, name: str) -> tuple[str, str]:
    """Make a call; return the code and the words with which it is refused, or nothing."""
    service, _, method = name.partition(".")
    raw = SAID[name].SerializeToString() if name in SAID else b""
    try:
        call = channel.unary_stream(f"/jupiter.v1.{service}/{method}", bytes, bytes)
        with suppress(StopAsyncIteration, TimeoutError):
            async with asyncio.timeout(SOON_S):
                await anext(aiter(call(raw)))
    except grpc.aio.AioRpcError as error:
        failure = from_rpc(error, "one")
        return failure.code, failure.message
    return "", ""


async def channel_of(who: Identity, node: Node, stack: AsyncExitStack) -> Any:
    """Return a connection of somebody to a node; one address may hold a few only."""
    way = PeerChannels(who, address_of(node), node.identity.certificate_pem)
    stack.push_async_callback(way.close)
    return way._channel(4 << 20)


@pytest.fixture(autouse=True)
def short_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jupiterd.daemon.membership.followed_leader.HEARD_WITHIN_S", 0.02)


async def test_each_call_is_for_those_whom_its_row_names(tmp_path: Path) -> None:
    people = ["stranger", "member", "removed", "former", "leader"]
    stranger, member, removed, former, leader = (named_identity(tmp_path, who) for who in people)
    asking = asked(tmp_path, member, former, leader, removed=removed)
    async with asking as node, AsyncExitStack() as stack:
        gang = [node.identity.node_id, leader.node_id]
        meeting = {"rank": 0, gang_stores.PARAM: StorePlace.of("x", gang).to_plain()}
        stack.enter_context(node.worker_runner.stores.opened(meeting))
        node.heartbeats.roster_changed()
        await follow(node, former, 1)
        node.heartbeats._handle(SaidGoodbye(former.node_id))
        await follow(node, leader, 2)
        found: dict[str, list[str]] = {name: [] for name in people}
        keys = (stranger, member, removed, former, leader)
        channels = [await channel_of(key, node, stack) for key in keys]
        for name in CALLS:
            for who, channel in zip(people, channels, strict=True):
                code, words = await answer(channel, name)
                assert code not in ("unexpected", "too-often"), (name, who, words)
                if code == "not-a-member" or any(said in words for said in NOT_THEIRS):
                    found[who].append(name)
    rows = {kind: [n for n in CALLS if RIGHTS[n].caller is kind] for kind in CallerKind}
    of_others = [name for name in CALLS if name in rows[CallerKind.LEADER] + rows[CallerKind.RANK]]
    closed = [name for name in CALLS if RIGHTS[name].caller is not CallerKind.ANYBODY]
    assert found == {
        "stranger": closed,
        "removed": closed,
        "member": of_others,
        "former": of_others,
        "leader": [],
    }
