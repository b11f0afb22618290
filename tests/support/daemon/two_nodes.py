"""Nodes whose Peer and Artifacts services answer on loopback, without discovery or heartbeats.

Owns putting them together. Everything is real; what a test wants to happen, it does itself.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from jupiterd.cluster.facts.facts import ClusterFounded, Fact, NodeAdmitted
from jupiterd.cluster.ledger.ledger import Ledger, parse
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.ledger.signature_check import add_verified
from jupiterd.daemon.ledger.snapshot_transfer import FetchedSnapshot
from jupiterd.daemon.runtime.settings import Settings
from jupiterd.daemon.runtime.state_dir import StateDir
from jupiterd.ids import NodeId
from jupiterd.ports import Address

EVERYTHING_BYTES = 64 << 20
TIMEOUT_S = 10.0


class _Over(Exception):  # noqa: N818 - the end of a test
    """Ends the tasks of a node."""


@asynccontextmanager
async def serving(folder: Path, name: str, **told: Any) -> AsyncGenerator[Node]:
    """Run one node's servers on a port of its own."""
    state_dir = StateDir.open(folder / name)
    settings = Settings(name=name, state_dir=folder / name, port=0, local=True, **told)
    try:
        async with asyncio.TaskGroup() as group:
            node = Node(settings, state_dir, group)
            server = node._make_server()
            node.local_view.port = node.handshake.joining.port = await server.start()
            node.local_view.members_port = server.members_port
            try:
                yield node
            finally:
                await server.stop(0)
                await node.close()
            raise _Over  # noqa: TRY301 - ends every task of the group
    except* _Over:
        pass


def address_of(node: Node) -> Address:
    return Address("127.0.0.1", node.local_view.port)


def admission_of(node: Node) -> NodeAdmitted:
    return NodeAdmitted(
        node.identity.node_id, node.settings.name, node.identity.certificate_pem, "window open"
    )


async def found(node: Node, *others: Node, facts: tuple[Fact, ...] = ()) -> None:
    """Let a node found its cluster and admit the others."""
    admissions = [admission_of(member) for member in (node, *others)]
    await node.replica.append(1, [ClusterFounded("home"), *admissions, *facts])


async def unite(founder: Node, *others: Node) -> None:
    """Found a cluster of these nodes, all linked and with its ledger; they follow the founder."""
    await found(founder, *others)
    for node in others:
        await node.replica.move_to(whole_ledger(founder.replica))
    everybody = (founder, *others)
    for node in everybody:
        for other in everybody:
            if other is not node:
                await link(node, other)
    follow(founder, *others)


def whole_ledger(replica: Replica) -> FetchedSnapshot:
    """What a newcomer fetches of a ledger whose entries are all held."""
    raws, _ = replica.lacking({}, EVERYTHING_BYTES)
    ledger = Ledger(replica.cluster)
    for raw in raws:
        add_verified(ledger, parse(raw))
    return FetchedSnapshot(ledger, NodeId("nobody"), None, raws)


def follow(leader: Node, *others: Node, term: int = 9) -> None:
    """Let these follow a leader, as they do once they have heard its heartbeat."""
    for node in others:
        node.heartbeats.followed.note(leader.identity.node_id, term)


async def link(node: Node, other: Node) -> None:
    await node.peers.link(
        other.identity.node_id,
        other.settings.name,
        address_of(other),
        other.identity.certificate_pem,
        other.local_view.members_port,
    )


def take_for_alive(node: Node, *others: Node) -> None:
    """Let a node count these as alive, as it would do if it heard their heartbeats."""
    alive = frozenset(each.identity.node_id for each in (node, *others))
    node.heartbeats.membership.alive = lambda: alive


async def until(is_so: Callable[[], bool]) -> None:
    """Wait until something that other tasks bring about is so."""
    async with asyncio.timeout(TIMEOUT_S):
        while not is_so():  # noqa: ASYNC110 - whatever brings it about tells nobody
            await asyncio.sleep(0.01)


async def lead(node: Node) -> None:
    """Let a node lead, and wait until its cluster is founded."""
    node.leadership.on_lead(1)
    async with asyncio.timeout(TIMEOUT_S):
        while node.identity.node_id not in node.replica.state.roles:
            await node.replica.changed_since(node.replica.version)
