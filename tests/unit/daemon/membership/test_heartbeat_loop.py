"""What a heartbeat may carry, and what a full disk does to a leader."""

from dataclasses import replace
from pathlib import Path

import msgpack
import pytest

from jupiterd.cluster.facts.facts import NodeRemoved
from jupiterd.cluster.membership.election import ElectionRole, ElectionTicked, PresenceChanged
from jupiterd.cluster.membership.presence import BecomeLeader, PersistTerm, StepDown
from jupiterd.cluster.membership.presence import Ticked as PresenceTicked
from jupiterd.cluster.values.interface_kind import InterfaceKind
from jupiterd.cluster.values.link_quality import LinkQuality
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.links.heartbeat_stream import Description
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.errors import DiskFullError
from jupiterd.ids import NodeId
from jupiterd.rpc import peer_pb2
from tests.support.daemon.two_nodes import found, lead, link, serving, unite, until, whole_ledger
from tests.unit.daemon.membership.test_handshake import by_precedence, greet

READING = {"load": {"cpu_percent": 7.0}}


async def linked(one: Node, other: Node) -> tuple[Node, Node]:
    stays, dissolves = by_precedence(one, other)
    await lead(stays)
    await greet(dissolves, stays)
    await greet(dissolves, stays)
    return stays, dissolves


@pytest.mark.parametrize(
    "told", [b"\xc1 no msgpack", msgpack.packb([1, 2]), b"\x00" * 5000, msgpack.packb(3)]
)
async def test_telemetry_that_cannot_be_read_leaves_the_last_reading(
    tmp_path: Path, told: bytes
) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        stays, dissolves = await linked(one, other)
        peer = dissolves.peers.require(stays.identity.node_id)
        for telemetry in (msgpack.packb(READING), told):
            beat = peer_pb2.Heartbeat(cluster=dissolves.replica.cluster, telemetry=telemetry)
            dissolves.heartbeats.heard(stays.identity.node_id, beat)
        assert peer.telemetry == READING


@pytest.mark.parametrize(
    "told", [b"\xc1", msgpack.packb({"cores": "many"}), msgpack.packb(3), msgpack.packb({})]
)
async def test_hardware_that_cannot_be_read_leaves_the_last_one(
    tmp_path: Path, told: bytes
) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        stays, dissolves = await linked(one, other)
        peer = dissolves.peers.require(stays.identity.node_id)
        for hardware in (msgpack.packb(stays.hardware.to_plain()), told):
            about = peer_pb2.About(name="one", hardware=hardware)
            beat = peer_pb2.Heartbeat(cluster=dissolves.replica.cluster, about=about)
            dissolves.heartbeats.heard(stays.identity.node_id, beat)
        assert peer.hardware == stays.hardware


async def test_what_was_told_before_there_was_a_link_is_known_when_there_is_one(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        stays, dissolves = await linked(one, other)
        node, cluster = stays.identity.node_id, dissolves.replica.cluster
        await dissolves.peers.unlink(node)
        about = stays.observers.description.describe().about
        dissolves.heartbeats.heard(node, peer_pb2.Heartbeat(cluster=cluster, about=about))
        await link(dissolves, stays)
        dissolves.heartbeats.heard(node, peer_pb2.Heartbeat(cluster=cluster))
        assert dissolves.peers.require(node).hardware == stays.hardware


async def test_links_are_told_when_they_change_and_not_with_every_beat(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        stays, dissolves = await linked(one, other)
        told = stays.observers.description.describe()
        assert stays.observers.description.describe().about is told.about
        assert "links" not in msgpack.unpackb(told.telemetry)
        peer = dissolves.peers.require(stays.identity.node_id)
        links = {"aaaaaaaa": [int(InterfaceKind.ETHERNET), 0.25, 1e9]}
        known = {"aaaaaaaa": LinkQuality(InterfaceKind.ETHERNET, 0.25, 1e9)}
        for plain, expected in ((links, known), ("nonsense", known), ({}, {})):
            about = peer_pb2.About(
                hardware=msgpack.packb(stays.hardware.to_plain()), links=msgpack.packb(plain)
            )
            beat = peer_pb2.Heartbeat(cluster=dissolves.replica.cluster, about=about)
            dissolves.heartbeats.heard(stays.identity.node_id, beat)
            assert peer.reported_links == expected


async def test_a_leader_without_room_for_its_term_steps_down_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(key: str, value: str) -> None:
        raise DiskFullError(f"no room for {key} {value}")

    async with serving(tmp_path, "one") as node:
        won = node.heartbeats.election.step(now_s() + 10, ElectionTicked())
        with monkeypatch.context() as full:
            full.setattr(node.file, "set", no_room)
            node.heartbeats._act(won)
            assert node.leading is None
            assert node.heartbeats.election.role is ElectionRole.FOLLOWER
            assert node.observers.health.cluster_view().disk_trouble == "no room for term 1"
            node.heartbeats._save_again()
            assert node.heartbeats.election.step(now_s() + 20, ElectionTicked()) == []
        node.heartbeats._save_again()
        assert node.observers.health.cluster_view().disk_trouble == ""
        node.heartbeats._act(node.heartbeats.election.step(now_s() + 30, ElectionTicked()))
        assert node.leading is not None


async def test_what_comes_behind_a_term_that_found_no_room_is_dropped_but_stepping_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(key: str, value: str) -> None:
        raise DiskFullError(f"no room for {key} {value}")

    async with serving(tmp_path, "one") as node:
        await lead(node)
        monkeypatch.setattr(node.file, "set", no_room)
        node.heartbeats._act(
            [PersistTerm(9), BecomeLeader(9, "why not"), StepDown("a stronger one")]
        )
        assert node.leading is None


async def test_a_leader_whose_machine_slept_steps_down_at_the_first_thing_it_hears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, "one") as node:
        node.heartbeats._handle(PresenceTicked())
        node.heartbeats._act(node.heartbeats.election.step(now_s() + 10, ElectionTicked()))
        assert node.leading is not None
        other = NodeId("ab" * 16)
        node.heartbeats._act(
            node.heartbeats.election.step(now_s(), PresenceChanged(frozenset({other})))
        )
        monkeypatch.setattr(
            "jupiterd.daemon.membership.heartbeat_loop.now_s", lambda: now_s() + 60.0
        )
        assert node.heartbeats.answer_pre_vote(node.identity.node_id, 1, 0)[0]
        assert node.leading is None


async def test_a_node_that_fell_silent_stays_so_when_it_moves(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as node:
        node.heartbeats.fall_silent()
        node.heartbeats.reset()
        node.heartbeats.reinstate()
        assert node.heartbeats.election.step(now_s() + 10, ElectionTicked()) == []


async def test_no_second_beat_begins_before_the_first_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        one.heartbeats.roster_changed()
        peer = one.peers.require(other.identity.node_id)
        beats: list[peer_pb2.Heartbeat] = []
        ask = peer.beats._ask

        async def count(beat: peer_pb2.Heartbeat, about: peer_pb2.About) -> peer_pb2.Heartbeat:
            beats.append(beat)
            return await ask(beat, about)

        monkeypatch.setattr(peer.beats, "_ask", count)
        for _ in range(2):
            one.heartbeats._start_beat(peer)
        await until(lambda: peer.answered_s > 0 and not peer.beats.is_busy)
        assert len(beats) == 1
        one.heartbeats._start_beat(peer)
        await until(lambda: len(beats) == 2 and not peer.beats.is_busy)


async def test_a_beat_that_cannot_be_made_stands_in_no_other_ones_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> Description:
        raise OSError("too many open files")

    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        one.heartbeats.roster_changed()
        peer = one.peers.require(other.identity.node_id)
        with monkeypatch.context() as trouble:
            trouble.setattr(one.observers.description, "describe", broken)
            one.heartbeats._start_beat(peer)
            await until(lambda: not peer.beats.is_busy)
        one.heartbeats._described_s = float("-inf")
        one.heartbeats._start_beat(peer)
        await until(lambda: peer.answered_s > 0)


async def test_an_answer_that_was_meant_for_the_cluster_before_counts_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        serving(tmp_path, "one") as one,
        serving(tmp_path, "other") as other,
        serving(tmp_path, "far") as far,
    ):
        await unite(one, other)
        await found(far, one)

        def granted_late(*_: object) -> tuple[bool, str]:
            one.replica._take(whole_ledger(far.replica).ledger)
            return True, "nobody leads"

        monkeypatch.setattr(other.heartbeats, "answer_pre_vote", granted_late)
        told: list[object] = []
        monkeypatch.setattr(one.heartbeats, "_handle", told.append)
        await one.heartbeats._ask(other.identity.node_id, 7)
        assert told == []


async def test_a_term_that_leaves_no_room_for_the_next_is_not_believed(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        stays, dissolves = await linked(one, other)
        node, cluster = stays.identity.node_id, dissolves.replica.cluster
        before = dissolves.heartbeats.election.term
        beat = peer_pb2.Heartbeat(cluster=cluster, term=2**64 - 1, leader=node)
        dissolves.heartbeats.heard(node, beat)
        assert dissolves.heartbeats.election.term == before


async def test_a_leader_that_was_replaced_for_its_silence_is_not_waited_for(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        stays, dissolves = await linked(one, other)
        leader, heartbeats = stays.identity.node_id, dissolves.heartbeats
        beat = peer_pb2.Heartbeat(cluster=dissolves.replica.cluster, term=1, leader=leader)
        heartbeats.heard(leader, beat)
        assert leader in heartbeats.answering()
        while heartbeats.election.role is not ElectionRole.LEADER:
            heartbeats.election.step(heartbeats.election.wake_at, ElectionTicked())
        assert leader not in heartbeats.answering()
        beat.echo_s = now_s()
        heartbeats.heard(leader, beat)
        assert leader in heartbeats.answering()


async def test_an_election_that_a_removal_decides_goes_above_the_term_of_its_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        one.heartbeats.roster_changed()
        one.heartbeats.election.step(now_s() + 10, ElectionTicked())
        assert one.heartbeats.election.role is ElectionRole.ASKING
        gone = other.identity.node_id
        admissions = one.replica.state.roster.admissions_of(gone)
        await one.replica.append(7, [NodeRemoved(gone, admissions, {})])
        led: list[int] = []
        effects = replace(one.heartbeats._effects, on_lead=led.append)
        monkeypatch.setattr(one.heartbeats, "_effects", effects)
        one.heartbeats.roster_changed()
        assert led == [8], "in no term that an entry has already"
