"""What other nodes may ask of this one, over real TLS."""

import asyncio
import json
from pathlib import Path
from typing import Any

import grpc
import pytest

from jupiterd.cluster.facts.facts import WALKED_IN, ClusterMerged, PairingWindowSet
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.executor.dispatcher import Dispatcher
from jupiterd.daemon.ledger.snapshot_transfer import fetch_ledger, fetch_snapshot
from jupiterd.daemon.links.heartbeat_stream import BeatStream
from jupiterd.daemon.links.seen_clusters import from_message, to_message
from jupiterd.daemon.runtime.work_events import WorkOrder, from_proto
from jupiterd.errors import DiskFullError, RefusedError
from jupiterd.ids import ClusterId, NodeId
from jupiterd.net.channels import PeerChannels
from jupiterd.net.interfaces import every_address
from jupiterd.protocol.call_errors import from_rpc
from jupiterd.rpc import artifact_pb2, peer_pb2
from tests.support.daemon.two_nodes import TIMEOUT_S, address_of, found, lead, serving, unite

DECISIONS = peer_pb2.JoinReply.Decision


def channels(asker: Node, asked: Node) -> PeerChannels:
    return PeerChannels(asker.identity, address_of(asked), asked.identity.certificate_pem)


def join_request(node: Node) -> peer_pb2.JoinRequest:
    return peer_pb2.JoinRequest(
        name=node.settings.name,
        port=node.local_view.port,
        certificate_pem=node.identity.certificate_pem,
    )


async def test_a_stranger_learns_of_a_cluster_at_work_its_id_its_label_and_its_door(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "stranger") as stranger:
        merged = [ClusterMerged(ClusterId(c * 32), one.replica.cluster) for c in "ab"]
        await found(one, facts=tuple(merged))
        way = channels(stranger, one)
        hello = stranger.handshake.hello(one.identity.node_id)
        reply = await way.control.Hello(hello, timeout=TIMEOUT_S)
        known = one.summary()
        assert len(known.absorbed) == 2
        assert reply.summary == peer_pb2.ClusterSummary(
            cluster=known.cluster, label="home", open=known.open
        )
        assert (reply.name, reply.member, list(reply.member_addresses)) == ("", False, [])
        await way.close()


async def test_a_stranger_tells_as_little_and_each_hears_of_its_own_cluster(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "stranger") as stranger:
        merged = ClusterMerged(stranger.replica.cluster, one.replica.cluster)
        await found(one, facts=(merged,))
        assert one.handshake.hello(stranger.identity.node_id) == peer_pb2.HelloRequest(
            protocol=1,
            summary=to_message(one.summary().for_stranger(None)),
            port=one.local_view.port,
        )
        way = channels(stranger, one)
        hello = stranger.handshake.hello(one.identity.node_id)
        reply = await way.control.Hello(hello, timeout=TIMEOUT_S)
        assert list(reply.summary.absorbed) == [stranger.replica.cluster]
        assert hello.summary.members == 1  # of two without work the larger one stays
        await way.close()


async def test_a_member_learns_everything_by_a_hello(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two") as two:
        await found(one, two)
        way = channels(two, one)
        reply = await way.control.Hello(
            two.handshake.hello(one.identity.node_id), timeout=TIMEOUT_S
        )
        assert from_message(reply.summary) == one.summary()
        assert (reply.name, reply.member) == ("one", True)
        await way.close()


CALLS: dict[str, Any] = {
    "Leave": peer_pb2.LeaveRequest(),
    "AskPreVote": peer_pb2.PreVoteRequest(term=9),
    "Exchange": peer_pb2.ExchangeRequest(),
    "Command": peer_pb2.CommandRequest(verb="cluster.open", arguments_json="{}"),
    "OpenProbe": peer_pb2.OpenProbeRequest(toward="127.0.0.1"),
    "EndEpoch": peer_pb2.EndAttemptRequest(term=9, attempt=9),
    "NotePath": peer_pb2.NotePathRequest(address="127.0.0.1:1", bits_per_s=1.0),
    "PrepareRanks": peer_pb2.PrepareRanksRequest(engine="torch"),
    "TraceSamples": peer_pb2.TraceRequest(samples=["0" * 64]),
    "ProbeRoutes": peer_pb2.ProbeRoutesRequest(targets=["127.0.0.1:1"]),
}


@pytest.mark.parametrize("verb", CALLS)
async def test_a_stranger_may_ask_for_nothing_else(tmp_path: Path, verb: str) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "stranger") as stranger:
        await found(one)
        way = channels(stranger, one)
        ask = getattr(way.control, verb)
        with pytest.raises(grpc.aio.AioRpcError) as error:  # a first handshake may be dropped
            await ask(CALLS[verb], timeout=TIMEOUT_S, wait_for_ready=True)
        assert error.value.code() is grpc.StatusCode.PERMISSION_DENIED
        await way.close()


async def test_a_strangers_heartbeats_are_refused(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "stranger") as stranger:
        await found(one)
        way = channels(stranger, one)
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await BeatStream(lambda: way.heartbeat).ask(peer_pb2.Heartbeat(), peer_pb2.About())
        assert error.value.code() is grpc.StatusCode.PERMISSION_DENIED
        await way.close()


async def test_a_stranger_runs_no_work_and_sees_no_artifact(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "stranger") as stranger:
        await found(one)
        way = channels(stranger, one)
        order = WorkOrder("x", 1, "collect", {}, {})
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await anext(aiter(way.control.RunWork(order.to_proto(), timeout=TIMEOUT_S)))
        assert error.value.code() is grpc.StatusCode.PERMISSION_DENIED
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await way.bulk.Have(artifact_pb2.HaveRequest(ids=["a" * 64]), timeout=TIMEOUT_S)
        assert error.value.code() is grpc.StatusCode.PERMISSION_DENIED
        await way.close()


async def test_a_newcomer_is_let_in_and_gets_the_whole_ledger(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "new") as new:
        await lead(one)
        way = channels(new, one)
        reply = await way.control.Join(join_request(new), timeout=TIMEOUT_S)
        assert reply.decision == DECISIONS.ADMITTED
        assert reply.reason == WALKED_IN
        cluster = ClusterId(reply.cluster)
        ledger = (await fetch_ledger(way.control, one.identity.node_id, cluster)).ledger
        assert set(ledger.state.members) == {one.identity.node_id, new.identity.node_id}
        assert ledger.state.members[new.identity.node_id].name == "new"
        again = await way.control.Join(join_request(new), timeout=TIMEOUT_S)
        assert (again.decision, again.reason) == (DECISIONS.ADMITTED, "it is a member already")
        await way.close()


async def test_a_closed_cluster_says_what_opens_it(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "new") as new:
        await found(one, facts=(PairingWindowSet(is_open=False, edit=1),))
        await lead(one)
        way = channels(new, one)
        reply = await way.control.Join(join_request(new), timeout=TIMEOUT_S)
        assert reply.decision == DECISIONS.REFUSED
        assert "jupiterctl cluster open" in reply.reason
        assert new.identity.node_id not in one.replica.state.members
        await way.close()


async def test_nobody_comes_in_under_another_s_certificate(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "thief") as thief:
        await lead(one)
        way = channels(thief, one)
        request = join_request(thief)
        request.certificate_pem = one.identity.certificate_pem
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await way.control.Join(request, timeout=TIMEOUT_S)
        assert error.value.code() is grpc.StatusCode.PERMISSION_DENIED
        assert set(one.replica.state.members) == {one.identity.node_id}
        await way.close()


async def test_who_does_not_lead_sends_a_newcomer_on(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "new") as new:
        await found(one)
        way = channels(new, one)
        reply = await way.control.Join(join_request(new), timeout=TIMEOUT_S)
        assert reply.decision == DECISIONS.ASK_LEADER
        await way.close()


async def test_a_command_is_done_by_the_leader_alone(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        way = other.peers.require(one.identity.node_id).channels
        request = peer_pb2.CommandRequest(verb="cluster.close", arguments_json="{}")
        refused = await way.control.Command(request, timeout=TIMEOUT_S)
        assert refused.failure.code == "no-leader"
        await lead(one)
        done = await way.control.Command(request, timeout=TIMEOUT_S)
        assert json.loads(done.result_json) == {"schema": "jupiter/v1", "open": False}
        assert not one.replica.state.window_open
        request.verb = "format.disk"
        unknown = await way.control.Command(request, timeout=TIMEOUT_S)
        assert (unknown.failure.code, bool(unknown.failure.hint)) == ("usage", True)


async def test_an_order_of_a_leader_that_was_replaced_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        await other.order_executor._fencing.check(one.identity.node_id, 5, 0)
        way = one.peers.require(other.identity.node_id).channels
        order = WorkOrder("x", 4, "collect", {}, {})
        call = way.control.RunWork(order.to_proto(), timeout=TIMEOUT_S)
        message = await anext(aiter(call))
        assert isinstance(message, peer_pb2.WorkEvent)
        with pytest.raises(RefusedError, match="after term 5"):
            from_proto(message)
        assert list(other.state_dir.spool.iterdir()) == []


async def test_a_second_leader_of_one_term_is_obeyed_in_the_next(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        leader, follower = one.identity.node_id, other.identity.node_id
        dispatcher = Dispatcher(leader, one.order_executor, one.peers)
        one.heartbeats._act(one.heartbeats.election._lead(2, "nobody else is here"))
        other.heartbeats.heard(leader, one.heartbeats.message(follower))
        await other.order_executor._fencing.check(NodeId("e" * 32), 2, 0)
        with pytest.raises(RefusedError, match="of eeeeeeee"):
            await dispatcher.end(follower, 2, 1)
        one.heartbeats.heard(follower, other.heartbeats.message(leader))
        assert one.heartbeats.election.term > 2
        other.heartbeats.heard(leader, one.heartbeats.message(follower))
        await dispatcher.end(follower, one.heartbeats.election.term, 1)


async def test_routes_between_two_nodes_are_proved_by_connecting(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        way = one.peers.require(other.identity.node_id).channels
        opened = await way.control.OpenProbe(
            peer_pb2.OpenProbeRequest(toward="127.0.0.1", reserve=True), timeout=TIMEOUT_S
        )
        assert opened.reserved_port not in (0, opened.port)
        assert (opened.host, opened.failure.code) == ("127.0.0.1", "")
        assert opened.addresses[0] == "127.0.0.1"
        assert set(opened.addresses[1:]) <= set(every_address())
        request = peer_pb2.ProbeRoutesRequest(targets=[f"127.0.0.1:{opened.port}"])
        assert not (await way.control.ProbeRoutes(request, timeout=TIMEOUT_S)).failures
        request.targets[:] = ["127.0.0.1:1"]
        (failure,) = (await way.control.ProbeRoutes(request, timeout=TIMEOUT_S)).failures
        assert failure.code == "bad-route"
        assert "127.0.0.1:1" in failure.message


async def test_a_node_that_joins_elsewhere_admits_nobody_meanwhile(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "new") as new:
        await lead(one)
        way = channels(new, one)
        async with one.handshake.joining._requesting, asyncio.timeout(TIMEOUT_S):
            reply = await way.control.Join(join_request(new))
        assert reply.decision == DECISIONS.PENDING
        await way.close()


async def test_what_stands_in_the_way_of_an_answer_is_told_to_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: object) -> int:
        raise DiskFullError("no room for the ledger")

    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        monkeypatch.setattr(one.replica, "absorb", full)
        way = channels(other, one)
        request = peer_pb2.ExchangeRequest(cluster=one.replica.cluster)
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await way.control.Exchange(request, timeout=TIMEOUT_S)
        told = from_rpc(error.value, "one")
        assert (told.code, told.message) == ("disk-full", "no room for the ledger")
        await way.close()


async def test_a_newcomer_takes_a_long_history_by_snapshot_and_the_rest_in_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupiterd.daemon.ledger.replica.MAX_ENTRIES", 5)
    monkeypatch.setattr("jupiterd.daemon.ledger.anti_entropy.BATCH_BYTES", 600)
    async with serving(tmp_path, "one") as one, serving(tmp_path, "new") as new:
        await lead(one)
        for edit in range(1, 30):
            await one.replica.append(1, [PairingWindowSet(is_open=True, edit=edit)])
            if edit == 20:
                await one.replica.compact()
        way = channels(new, one)
        reply = await way.control.Join(join_request(new), timeout=TIMEOUT_S)
        cluster = ClusterId(reply.cluster)
        fetched = await fetch_ledger(way.control, one.identity.node_id, cluster)
        assert fetched.snapshot is not None
        assert len(fetched.entries) == 10
        await new.replica.move_to(fetched)
        assert new.replica.ledger.head() == one.replica.ledger.head()
        assert new.replica.state == one.replica.state
        await way.close()


async def test_a_stranger_gets_no_snapshot(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "new") as new:
        await found(one)
        way = channels(new, one)
        with pytest.raises(grpc.aio.AioRpcError, match="is not a member"):
            await fetch_snapshot(way.control)
        await way.close()


async def call_often(way: PeerChannels, node: Node) -> None:
    for _ in range(100):
        await way.control.Hello(node.handshake.hello(node.identity.node_id), timeout=TIMEOUT_S)


async def test_a_stranger_that_calls_without_end_is_refused_and_members_are_not(
    tmp_path: Path,
) -> None:
    async with (
        serving(tmp_path, "one") as one,
        serving(tmp_path, "other") as other,
        serving(tmp_path, "stranger") as stranger,
    ):
        await unite(one, other)
        way, members_way = channels(stranger, one), channels(other, one)
        with pytest.raises(grpc.aio.AioRpcError, match="too many calls"):
            await call_often(way, stranger)
        await call_often(members_way, other)
        await way.close()
        await members_way.close()
