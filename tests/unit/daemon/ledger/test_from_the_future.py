"""What a newer Jupiter says is kept and passed on, and takes nothing from what is understood."""

from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import NodeAdmitted, UnknownFact
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.rpc import peer_pb2
from jupiterd.store.ledger_file import LedgerFile
from tests.support.daemon.two_nodes import EVERYTHING_BYTES, found, serving, unite, whole_ledger

LATER = UnknownFact("RoundPraised", 3, {"round": 7, "by": "ada", "how": {"loud": True}})
NEWER = UnknownFact("RoleAssigned", 99, {"node": "n", "role": "conductor", "mood": "good"})
FIELD = b"\xa2\x06\x05later"
"""Number 100, with five bytes."""


def unknown(replica: Replica) -> list[UnknownFact]:
    return [fact for _, fact in replica.state.placed() if isinstance(fact, UnknownFact)]


async def pass_on(giver: Node, taker: Node) -> None:
    raws, _ = giver.replica.lacking(taker.replica.saved_tips, EVERYTHING_BYTES)
    await taker.replica.absorb(raws)


async def test_facts_of_the_future_go_from_a_newer_node_through_an_older_one_to_a_third(
    tmp_path: Path,
) -> None:
    async with (
        serving(tmp_path, "newer") as newer,
        serving(tmp_path, "older") as older,
        serving(tmp_path, "third") as third,
    ):
        await unite(newer, older, third)
        await newer.replica.append(1, [LATER, NEWER])
        await pass_on(newer, older)
        await pass_on(older, third)
        for node in (older, third):
            assert set(map(str, unknown(node.replica))) == {str(LATER), str(NEWER)}
            assert node.replica.ledger.head() == newer.replica.ledger.head()
        assert third.replica.state.roles == {}  # of a version that nobody here understands


async def test_a_fact_of_the_future_is_still_there_after_a_snapshot_and_a_restart(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "older") as older:
        await found(older, facts=(LATER,))
        await older.replica.compact()
        file = LedgerFile(older.state_dir.ledger)
        assert unknown(Replica(older.identity, file)) == [LATER]
        file.close()


async def test_a_field_of_the_future_in_a_greeting_is_no_obstacle(tmp_path: Path) -> None:
    async with serving(tmp_path, "newer") as newer, serving(tmp_path, "older") as older:
        await unite(newer, older)
        raw = newer.handshake.hello(older.identity.node_id).SerializeToString() + FIELD
        peer = newer.peers.require(older.identity.node_id)
        reply = await peer.channels.control.Hello(peer_pb2.HelloRequest.FromString(raw))
        assert reply.member


@pytest.mark.parametrize("more", [b"", FIELD])
async def test_a_field_of_the_future_in_a_heartbeat_is_no_obstacle(
    tmp_path: Path, more: bytes
) -> None:
    async with serving(tmp_path, "newer") as newer, serving(tmp_path, "older") as older:
        await unite(newer, older)
        beat = newer.heartbeats.message(older.identity.node_id).SerializeToString()
        assert newer.identity.node_id not in older.alive()
        older.heartbeats.roster_changed()
        older.heartbeats.heard(newer.identity.node_id, peer_pb2.Heartbeat.FromString(beat + more))
        assert newer.identity.node_id in older.alive()


async def test_a_ledger_with_facts_of_the_future_can_be_joined(tmp_path: Path) -> None:
    async with serving(tmp_path, "newer") as newer, serving(tmp_path, "older") as older:
        await found(newer, older, facts=(LATER,))
        await older.replica.move_to(whole_ledger(newer.replica))
        assert unknown(older.replica) == [LATER]
        assert set(older.replica.state.members) == {newer.identity.node_id, older.identity.node_id}
        assert isinstance(older.replica.state.members[older.identity.node_id], NodeAdmitted)
