"""A member tells numbers that would end a cluster for good, over real TLS, and is removed."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import NodeAdmitted, NodeRemoved, PairingWindowSet
from jupiterd.cluster.ledger import entry as entry_form
from jupiterd.cluster.membership.presence import Ticked
from jupiterd.daemon.app.node import Node
from jupiterd.ids import ClusterId
from jupiterd.net.identity import Identity
from jupiterd.rpc import peer_pb2
from tests.hostile.test_trespass import call
from tests.support.daemon.two_nodes import serving, unite
from tests.unit.net.conftest import named_identity

pytestmark = pytest.mark.net

HUGE = 2**53


@dataclass
class Scene:
    """A leader, who follows it, and a member that lies."""

    one: Node
    other: Node
    liar: Identity


@asynccontextmanager
async def scene(folder: Path) -> AsyncIterator[Scene]:
    async with serving(folder, "one") as one, serving(folder, "other") as other:
        liar = named_identity(folder, "liar")
        await unite(one, other)
        admission = NodeAdmitted(liar.node_id, "liar", liar.certificate_pem, "window open")
        await one.replica.append(1, [admission])
        await share(one, other)
        one.heartbeats._act(one.heartbeats.election._lead(2, "it was elected"))
        hear(one, other)
        assert other.heartbeats.election.leader == one.identity.node_id
        yield Scene(one, other, liar)


def hear(speaker: Node, listener: Node) -> None:
    """Let a heartbeat arrive."""
    beat = speaker.heartbeats.message(listener.identity.node_id)
    listener.heartbeats.heard(speaker.identity.node_id, beat)


async def share(source: Node, target: Node) -> None:
    """Let everything come over that the target takes."""
    raws, _ = source.replica.lacking(target.replica.ledger.tips(), 1 << 20)
    await target.replica.absorb(raws)
    target.heartbeats.roster_changed()


def signed(liar: Identity, cluster: ClusterId, term: int) -> bytes:
    """What its program signs, which bounds nothing."""
    told = [["WindowSet", 1, {"is_open": False, "edit": HUGE}]]
    body = entry_form._pack([cluster, term, liar.node_id, "a" * 16, 1, "", told])
    return entry_form.seal(body, liar.sign(body))


def beats(scene: Scene, node: Node, term: int) -> tuple[str, bytes]:
    """Follow who leads, and know of a greater term: who leads goes above it, and all the others."""
    leader = scene.one.identity.node_id
    beat = peer_pb2.Heartbeat(cluster=node.replica.cluster, term=term, leader=leader, echo_s=1.0)
    return "Beat", beat.SerializeToString()


def exchanges(scene: Scene, node: Node, term: int) -> tuple[str, bytes]:
    raw = signed(scene.liar, node.replica.cluster, term)
    request = peer_pb2.ExchangeRequest(cluster=node.replica.cluster, entries=[raw], roster=[raw])
    return "Exchange", request.SerializeToString()


def orders(_: Scene, __: Node, term: int) -> tuple[str, bytes]:
    request = peer_pb2.WorkRequest(id="x", term=term, attempt=term, task="store", params=b"\x80")
    return "RunWork", request.SerializeToString()


def ends(_: Scene, __: Node, term: int) -> tuple[str, bytes]:
    return "EndEpoch", peer_pb2.EndAttemptRequest(term=term, attempt=term).SerializeToString()


def asks(_: Scene, node: Node, term: int) -> tuple[str, bytes]:
    request = peer_pb2.PreVoteRequest(term=term, cluster=node.replica.cluster)
    return "AskPreVote", request.SerializeToString()


def asks_for_a_number(_: Scene, __: Node, term: int) -> tuple[str, bytes]:
    arguments = f'{{"name": "x", "edit": {term}}}'
    request = peer_pb2.CommandRequest(verb="cluster.rename", arguments_json=arguments)
    return "Command", request.SerializeToString()


Lie = Callable[[Scene, Node, int], tuple[str, bytes]]


@pytest.mark.parametrize("lie", [beats, exchanges, orders, ends, asks, asks_for_a_number])
async def test_a_huge_number_of_a_member_ends_nothing(tmp_path: Path, lie: Lie) -> None:
    async with scene(tmp_path) as told:
        one, other = told.one, told.other
        for node in (one, other):
            for term in (HUGE - 1, HUGE, 2**64 - 1):
                method, raw = lie(told, node, term)
                try:
                    await call(told.liar, node, f"/jupiter.v1.Peer/{method}", raw)
                except Exception as error:  # noqa: BLE001 - as it likes, but for a fault of ours
                    assert "fault" not in str(error)  # noqa: PT017
        await goes_on(told)
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        assert max(one.heartbeats.election.term, other.heartbeats.election.term) < 10, (
            "on disk, too"
        )
        assert other.order_executor._fencing._highest.term < 10


async def goes_on(told: Scene) -> None:
    """The liar is removed, a new leader is elected, records and orders, and is obeyed."""
    one, other, state = told.one, told.other, told.one.replica.state
    hear(other, one)
    hear(one, other)
    gone = NodeRemoved(told.liar.node_id, state.roster.admissions_of(told.liar.node_id), {})
    await one.replica.append(one.heartbeats.election.term, [gone])
    await share(one, other)
    assert set(other.replica.state.members) == {n.identity.node_id for n in (one, other)}
    other.heartbeats._act(
        other.heartbeats.election._lead(one.heartbeats.election.term + 1, "the first is gone")
    )
    term = other.heartbeats.election.term
    await other.replica.append(term, [PairingWindowSet(is_open=True, edit=state.window_edit + 1)])
    await share(other, one)
    assert one.replica.state.window_open
    await one.order_executor._fencing.check(other.identity.node_id, term, 1)
    assert term < 10


async def test_who_tells_ever_greater_terms_drives_a_cluster_no_faster_than_it_hears(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as told:
        one, other = told.one, told.other
        for _ in range(12):
            method, raw = beats(told, other, other.heartbeats.election.term + 2**18)
            await call(told.liar, other, f"/jupiter.v1.Peer/{method}", raw)
        assert 2 < other.heartbeats.election.term <= 2 + 2**20
        other.heartbeats._handle(Ticked(0.0))
        hear(other, one)
        hear(one, other)
        leads = one.heartbeats.election
        assert (leads.leader, leads.term) == (one.identity.node_id, other.heartbeats.election.term)
