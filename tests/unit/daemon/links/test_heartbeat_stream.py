"""One stream of heartbeats for each pair of nodes, over real TLS."""

import math
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import grpc
import pytest

from jupiterd.cluster.ledger.lww_registers import canonical_bytes
from jupiterd.cluster.membership.election import ElectionTicked
from jupiterd.cluster.membership.presence import Beat, RosterChanged
from jupiterd.daemon.links.heartbeat_stream import from_message, to_message
from jupiterd.daemon.membership.heartbeat_loop import PROVE_LINK_S
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.ids import NodeId
from jupiterd.rpc import peer_pb2
from tests.support.daemon.shown import health_of, status_of
from tests.support.daemon.two_nodes import lead, serving, unite, until

ME, BOB, EVE = (NodeId(letter * 32) for letter in "abe")


def test_a_beat_comes_out_as_it_went_in() -> None:
    beat = Beat(
        ME, 7, BOB, 2, 3, runs_gang=True, ages_s={BOB: 0.25, EVE: 4.0}, sent_s=9.5, echo_s=8.0
    )
    message = to_message(beat, "cluster", "head")
    assert from_message(ME, message, [ME, BOB, EVE]) == beat


def test_ages_of_who_is_no_member_here_are_left_out() -> None:
    message = to_message(Beat(ME, 7, None, ages_s={BOB: 1.0, EVE: 2.0}), "cluster", "head")
    assert from_message(ME, message, [ME, EVE]).ages_s == {EVE: 2.0}


def test_a_beat_among_sixteen_is_small() -> None:
    ages_s = {NodeId(f"{number:032x}"): 0.4 for number in range(15)}
    message = to_message(Beat(ME, 7, BOB, 2, 16, ages_s=ages_s), "c" * 32, "d" * 64)
    assert len(message.SerializeToString()) < 420


async def test_a_heartbeat_is_heard_and_answered(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        one.heartbeats.roster_changed()
        peer = other.peers.require(one.identity.node_id)
        reply = await peer.beats.ask(
            other.heartbeats.message(peer.node), other.observers.description.describe().about
        )
        assert other.identity.node_id in one.alive()
        assert (reply.cluster, reply.about.name) == (one.replica.cluster, "one")
        assert reply.head == other.replica.ledger.head()
        told = one.peers.require(other.identity.node_id)
        assert told.hardware == other.hardware


async def test_answers_tell_how_long_the_way_is_as_long_as_the_stream_lasts(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        peer = other.peers.require(one.identity.node_id)

        def shown() -> float | None:
            rows = {node["id"]: node["rtt_s"] for node in status_of(other)["nodes"]}
            assert rows[other.identity.node_id] is None, "that is here"
            return rows[one.identity.node_id]

        about = other.observers.description.describe().about
        await peer.beats.ask(other.heartbeats.message(peer.node), about)
        assert shown() is None, "the first one came after a handshake"
        await peer.beats.ask(other.heartbeats.message(peer.node), about)
        assert 0 < (shown() or 0) < 1
        peer.beats.close()
        assert shown() is None


@pytest.mark.parametrize(("ahead_s", "is_told"), [(-7200.0, True), (0.0, False)])
async def test_whose_clock_differs_is_told_by_who_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead_s: float, *, is_told: bool
) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        other.heartbeats.roster_changed()
        as_it_is = one.heartbeats.message

        def elsewhen(to: NodeId) -> peer_pb2.Heartbeat:
            message = as_it_is(to)
            message.wall_s += ahead_s
            return message

        monkeypatch.setattr(one.heartbeats, "message", elsewhen)
        peer = other.peers.require(one.identity.node_id)
        for _ in range(2):  # the first answer comes after a handshake
            reply = await peer.beats.ask(other.heartbeats.message(peer.node), peer_pb2.About())
            other.heartbeats.heard(one.identity.node_id, reply)
        lines = [line for line in health_of(other) if line["code"] == "clock-differs"]
        titles = ["the clocks of one and other differ by 2 h 00 min"] if is_told else []
        assert [line["title"] for line in lines] == titles
        peer.beats.close()
        assert not [line for line in health_of(other) if line["code"] == "clock-differs"]


async def test_telemetry_is_told_when_it_has_changed_and_the_last_one_holds(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        there = one.identity.node_id
        peer, about = other.peers.require(there), other.observers.description.describe().about

        async def asked(told: bytes) -> peer_pb2.Heartbeat:
            one.heartbeats._description = replace(one.heartbeats._description, telemetry=told)
            one.heartbeats._described_s = math.inf
            reply = await peer.beats.ask(other.heartbeats.message(there), about)
            other.heartbeats.heard(there, reply)
            return reply

        calm, busy = (canonical_bytes({"load": {"cpu_percent": x}}) for x in (7.0, 99.0))
        assert [(await asked(each)).telemetry for each in (calm, calm, busy)] == [calm, b"", busy]
        assert peer.telemetry == {"load": {"cpu_percent": 99.0}}
        peer.beats.close()
        assert (await asked(busy)).telemetry == busy, "a new stream begins anew"


async def test_what_seldom_changes_is_told_once_in_a_stream(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        peer = other.peers.require(one.identity.node_id)
        about = other.observers.description.describe().about
        replies = [
            await peer.beats.ask(other.heartbeats.message(peer.node), about) for _ in range(2)
        ]
        assert [reply.HasField("about") for reply in replies] == [True, False]
        peer.beats.close()
        reply = await peer.beats.ask(other.heartbeats.message(peer.node), about)
        assert reply.HasField("about")


async def test_a_stream_of_heartbeats_ends_with_the_membership(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        await lead(one)
        peer = other.peers.require(one.identity.node_id)
        about = other.observers.description.describe().about
        await peer.beats.ask(other.heartbeats.message(peer.node), about)
        await one.commands.execute_here("node.remove", {"node": other.identity.node_id})
        with pytest.raises(grpc.aio.AioRpcError, match="is not a member"):
            await peer.beats.ask(other.heartbeats.message(peer.node), about)


async def test_a_peer_whose_stream_breaks_is_beaten_to_at_once(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        async with serving(tmp_path, "other") as other:
            await unite(one, other)
            node = other.identity.node_id
            for each in (one, other):
                each.heartbeats.roster_changed()
            one.heartbeats._start_beat(one.peers.require(node))
            await until(lambda: node in one.alive())
        await until(lambda: node not in one.heartbeats.membership.present())


async def test_who_leaves_is_gone_at_once_and_names_who_leads_next(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        await lead(one)
        for each in (one, other):
            each.heartbeats.roster_changed()
        one.heartbeats.election.step(now_s() + 10, ElectionTicked())
        peer = one.peers.require(other.identity.node_id)
        one.heartbeats._start_beat(peer)
        await until(lambda: other.identity.node_id in one.alive())
        await one.heartbeats.say_goodbye()
        assert one.identity.node_id not in other.heartbeats.membership.present()


async def test_a_beat_whose_link_was_closed_before_ends_no_daemon(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        peer = other.peers.require(one.identity.node_id)
        assert peer.channels.heartbeat
        await other.peers.unlink(one.identity.node_id)
        with pytest.raises(grpc.aio.AioRpcError, match="the link was closed"):
            await peer.beats.ask(
                other.heartbeats.message(peer.node), other.observers.description.describe().about
            )
        await other.heartbeats._beat(peer)


async def test_two_followers_beat_half_as_often_as_a_leader_and_a_follower(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        node = other.identity.node_id
        assert one.heartbeats._is_one_the_leader(node), "nobody leads yet"
        one.heartbeats.roster_changed()
        beat = Beat(node, 1, NodeId("c" * 32))
        one.heartbeats._handle(RosterChanged(frozenset((node, NodeId("c" * 32)))))
        one.heartbeats._handle(beat)
        assert not one.heartbeats._is_one_the_leader(node)
        assert one.heartbeats._is_one_the_leader(NodeId("c" * 32))


async def test_two_followers_take_turns_and_each_proves_its_own_way(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as first, serving(tmp_path, "other") as second:
        await unite(first, second)
        one, other = sorted((first, second), key=lambda node: node.identity.node_id)
        to_other = one.peers.require(other.identity.node_id)
        to_one = other.peers.require(one.identity.node_id)
        called_s = now_s()
        assert one.heartbeats._is_turn(to_other, called_s - 1.0)
        assert not one.heartbeats._is_turn(to_other, called_s), "it has just been called"
        to_one.answered_s = called_s
        assert not other.heartbeats._is_turn(to_one, called_s)
        to_one.answered_s = called_s - PROVE_LINK_S
        assert other.heartbeats._is_turn(to_one, called_s), (
            "its own way must be proved all the same"
        )


async def test_calls_that_come_another_way_prove_nothing_of_ours(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        caller = other.identity.node_id
        peer, beat = one.peers.require(caller), other.heartbeats.message(one.identity.node_id)

        async def beats() -> AsyncGenerator[peer_pb2.Heartbeat]:
            yield beat

        for host, is_ours in ((peer.address.host, True), ("", True), ("10.99.0.7", False)):
            peer.answered_s = now_s() - 1.0
            async with aclosing(one.heartbeats.answers(caller, beats(), host)) as answers:
                await anext(answers)
                assert (one.heartbeats.proved_s(peer) > peer.answered_s) is is_ours


async def test_a_pre_vote_over_a_link_that_was_closed_ends_no_daemon(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        node = other.identity.node_id
        await one.peers.require(node).channels.close()
        await one.heartbeats._ask(node, 7)


async def test_a_goodbye_over_a_link_that_was_closed_stops_no_farewell(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        await one.peers.require(other.identity.node_id).channels.close()
        await one.heartbeats.say_goodbye()


async def test_a_link_that_is_closed_while_a_removed_node_is_told_ends_no_daemon(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        channels = one.peers.require(other.identity.node_id).channels
        await channels.close()
        await one.anti_entropy.send_roster(channels.control)
