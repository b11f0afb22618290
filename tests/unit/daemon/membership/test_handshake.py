"""From an address to a linked peer, over real TLS."""

import logging
import shutil
import socket
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import CycleStarted, CycleStateSet, PairingWindowSet
from jupiterd.cluster.membership.election import ElectionTicked
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.links.dial_schedule import (
    FIRST_RETRY_S,
    LAST_RETRY_S,
    LOOK_AGAIN_S,
    MAX_ADDRESSES,
    Attempt,
)
from jupiterd.daemon.membership import join_client
from jupiterd.daemon.membership.handshake import WORKING_S
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.ids import CycleId
from jupiterd.net.channels import PeerChannels
from jupiterd.ports import Address
from jupiterd.rpc import peer_pb2
from tests.support.daemon.two_nodes import (
    address_of,
    admission_of,
    found,
    lead,
    link,
    serving,
    unite,
    whole_ledger,
)

OPEN = PairingWindowSet(is_open=True, edit=1)
WORK = CycleStarted(CycleId("d" * 16), "python", "", 1, "1m", 1, "2026-01-01T00:00:00Z")
STOPPED = CycleStateSet(WORK.cycle, "stopped", "so that nobody conducts it", 1)


async def greet(node: Node, other: Node) -> Attempt:
    attempt = Attempt(now_s())
    await node.handshake._greet(address_of(other), attempt)
    return attempt


def by_precedence(one: Node, other: Node) -> tuple[Node, Node]:
    """Of two blank clusters the one with the smaller id stays."""
    if one.replica.cluster < other.replica.cluster:
        return one, other
    return other, one


async def test_of_two_blank_clusters_one_dissolves_and_both_sides_link(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        stays, dissolves = by_precedence(one, other)
        await lead(stays)
        await greet(stays, dissolves)
        assert stays.replica.cluster != dissolves.replica.cluster
        assert list(stays.peers) == []
        await greet(dissolves, stays)
        assert stays.replica.cluster == dissolves.replica.cluster
        assert len(dissolves.replica.state.members) == 2
        await greet(dissolves, stays)
        await greet(stays, dissolves)
        assert dissolves.peers.get(stays.identity.node_id) is not None
        assert stays.peers.get(dissolves.identity.node_id) is not None


async def test_a_blank_node_joins_the_cluster_that_has_work(tmp_path: Path) -> None:
    async with serving(tmp_path, "works") as works, serving(tmp_path, "blank") as blank:
        await found(works, facts=(WORK, STOPPED, OPEN))
        await lead(works)
        await greet(works, blank)
        assert blank.replica.cluster != works.replica.cluster
        await greet(blank, works)
        assert blank.replica.cluster == works.replica.cluster
        assert WORK.cycle in blank.replica.state.cycles


async def test_a_closed_cluster_leaves_a_newcomer_waiting_with_the_command(tmp_path: Path) -> None:
    async with serving(tmp_path, "works") as works, serving(tmp_path, "blank") as blank:
        await found(works, facts=(WORK,))
        await greet(blank, works)
        assert "jupiterctl cluster open" in blank.handshake.joining.pending_reason
        assert blank.replica.cluster != works.replica.cluster
        warnings = blank.observers.health.cluster_view().pending_reason
        assert warnings == blank.handshake.joining.pending_reason
        await found(blank, facts=(WORK,))
        assert blank.observers.health.cluster_view().pending_reason == "", (
            "it stays where its work is"
        )


async def test_two_clusters_with_work_stay_apart(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await found(one, facts=(WORK,))
        await found(other, facts=(WORK,))
        before = (one.replica.cluster, other.replica.cluster)
        await greet(one, other)
        await greet(other, one)
        assert (one.replica.cluster, other.replica.cluster) == before
        assert one.handshake.joining.pending_reason == other.handshake.joining.pending_reason == ""


async def test_a_node_that_sees_two_clusters_with_work_joins_neither(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, "one") as one,
        serving(tmp_path, "other") as other,
        serving(tmp_path, "blank") as blank,
    ):
        for node in (one, other):
            await found(node, facts=(WORK, OPEN))
        blank.handshake.seen.note(one.summary())
        await greet(blank, other)
        assert "are both in sight" in blank.handshake.joining.pending_reason
        assert blank.replica.cluster not in (one.replica.cluster, other.replica.cluster)


async def test_a_node_does_not_greet_itself_twice(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        attempt = await greet(one, one)
        assert attempt.is_ours
        assert list(one.peers) == []


async def test_an_address_where_nobody_answers_costs_one_look(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            address = Address("127.0.0.1", taken.getsockname()[1])
            await one.handshake._greet(address, Attempt(now_s()))
        assert list(one.peers) == []
        assert one.handshake.joining.pending_reason == ""


async def test_a_member_that_moved_is_linked_where_it_answers_now(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await found(one, other)
        await other.replica.move_to(whole_ledger(one.replica))
        stale = Address("127.0.0.1", 1)
        await one.peers.link(
            other.identity.node_id, "other", stale, admission_of(other).certificate_pem
        )
        await greet(one, other)
        assert one.peers.require(other.identity.node_id).address == address_of(other)


async def test_a_port_for_members_is_tried_first_unless_it_cannot_be_reached(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await found(one, other)
        await other.replica.move_to(whole_ledger(one.replica))
        told = other.local_view.members_port
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            other.local_view.members_port = taken.getsockname()[1]
            await greet(one, other)
            peer = one.peers.require(other.identity.node_id)
            assert peer.channels.members_port == 0
        other.local_view.members_port = told
        await greet(one, other)
        assert one.peers.require(other.identity.node_id) is peer
        assert peer.channels.members_port == told


async def test_where_a_peer_says_that_it_answers_it_is_looked_for_at_once(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        peer = one.peers.require(other.identity.node_id)
        there = Address("192.0.2.7", 1)
        peer.addresses = (str(peer.address), str(there))
        one.handshake._look_for_other_paths()
        attempt = one.handshake.addresses[there]
        assert [address for address, _ in one.handshake.addresses.due()] == [there]
        attempt.begin()
        attempt.end()
        one.handshake._look_for_other_paths()
        assert one.handshake.addresses.due() == []


async def met(node: Node, other: Node) -> Attempt:
    """Let a node greet another until it does so seldom, and return when that address is due."""
    node.handshake.addresses.note(address_of(other))
    attempt = node.handshake.addresses[address_of(other)]
    while not attempt.is_seldom:
        attempt.begin()
        await node.handshake._greet(address_of(other), attempt)
    return attempt


async def test_a_peer_whose_link_works_is_not_greeted_again_soon(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        attempt = await met(one, other)
        one.handshake._look_at_links()
        assert attempt.due_s > now_s() + LOOK_AGAIN_S - 5.0


@pytest.mark.parametrize("silent", ["answered_s", "heard_s"])
async def test_a_peer_whose_link_stops_working_is_greeted_at_once(
    tmp_path: Path, silent: str
) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        attempt = await met(one, other)
        setattr(one.peers.require(other.identity.node_id), silent, now_s() - WORKING_S)
        one.handshake._look_at_links()
        assert attempt.due_s <= now_s()


async def test_peers_are_greeted_now_and_then_while_a_member_is_here_without_a_link(
    tmp_path: Path,
) -> None:
    async with (
        serving(tmp_path, "one") as one,
        serving(tmp_path, "other") as other,
        serving(tmp_path, "far") as far,
    ):
        await unite(one, other, far)
        await one.peers.unlink(far.identity.node_id)
        attempt = await met(one, other)
        one.heartbeats.roster_changed()
        assert far.identity.node_id in one.heartbeats.present()
        one.handshake._look_at_links()
        assert attempt.due_s <= now_s() + LAST_RETRY_S


async def test_a_known_address_is_looked_at_again_at_once_when_it_is_seen_again(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one:
        address = Address("127.0.0.1", 4000)
        one.handshake.addresses.note(address)
        attempt = one.handshake.addresses[address]
        attempt.due_s, attempt.wait_s = now_s() + 30.0, 30.0
        one.handshake.addresses.note(address)
        assert attempt.due_s < now_s() + 1.0
        assert attempt.wait_s == FIRST_RETRY_S


async def test_a_network_that_shouts_fills_no_memory(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        for port in range(1, 2 * MAX_ADDRESSES):
            one.handshake.addresses.note(Address("127.0.0.1", port))
        assert len(one.handshake.addresses) == MAX_ADDRESSES


async def test_an_answer_with_addresses_that_are_none_is_survived(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        reply = peer_pb2.JoinReply(
            decision=peer_pb2.JoinReply.ASK_LEADER,
            leader_addresses=["x:y:z", "h:99999", "::1", "a-name-to-look-up:1"],
        )
        way = PeerChannels(one.identity, address_of(one), one.identity.certificate_pem)
        await one.handshake.joining._take_answer(one.identity.node_id, one.summary(), reply, way)
        assert [str(address) for address in one.handshake.addresses] == ["[::1]:47470"]


async def test_a_link_that_works_is_left_alone_when_another_address_is_seen(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        stays, dissolves = by_precedence(one, other)
        await lead(stays)
        await greet(dissolves, stays)
        await greet(dissolves, stays)
        peer = dissolves.peers.require(stays.identity.node_id)
        peer.answered_s = now_s()
        second = Address("localhost", address_of(stays).port)
        await dissolves.handshake._greet(second, Attempt(now_s()))
        assert dissolves.peers.require(stays.identity.node_id) is peer
        peer.answered_s = float("-inf")
        await dissolves.handshake._greet(second, Attempt(now_s()))
        assert dissolves.peers.require(stays.identity.node_id).address == second


async def test_another_address_of_a_peer_whose_link_is_no_more_is_looked_at_at_once(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        peer = one.peers.require(other.identity.node_id)
        peer.answered_s, peer.run_nonce = now_s(), other.local_view.run_nonce
        second = Address("localhost", address_of(other).port)
        one.handshake.addresses.note(second)
        attempt = one.handshake.addresses[second]
        await one.handshake._greet(second, attempt)
        one.handshake._look_at_links()
        assert attempt.due_s > now_s() + 60.0
        await one.peers.unlink(other.identity.node_id)
        one.handshake._look_at_links()
        assert attempt.due_s <= now_s()


async def test_peers_reached_from_an_address_that_is_gone_are_looked_for_at_all_of_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await found(one, other)
        await other.replica.move_to(whole_ledger(one.replica))
        first = await one.peers.link(
            other.identity.node_id, "other", address_of(other), admission_of(other).certificate_pem
        )
        first.source, first.addresses = "192.0.2.1", ("198.51.100.2:47470", "nowhere:0")
        first.answered_s = now_s()
        monkeypatch.setattr(one.handshake._lost, "among", lambda _: frozenset({"192.0.2.1"}))
        one.handshake._look_at_links()
        assert set(one.handshake.addresses) == {address_of(other), Address("198.51.100.2", 47470)}
        await greet(one, other)
        assert one.peers.require(other.identity.node_id) is not first


async def test_two_machines_with_one_key_both_fall_silent_and_say_so(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        one.heartbeats._act(one.heartbeats.election.step(now_s() + 10, ElectionTicked()))
        assert one.leading is not None
        (tmp_path / "clone").mkdir()
        shutil.copy(tmp_path / "one" / "key.pem", tmp_path / "clone" / "key.pem")
        async with serving(tmp_path, "clone") as clone:
            await greet(clone, one)
            for node, other in ((one, clone), (clone, one)):
                assert node.observers.health.cluster_view().clone_at == str(address_of(other))
                assert node.leading is None
                assert node.heartbeats.election.step(now_s() + 60, ElectionTicked()) == []
                assert not (await greet(node, other)).is_ours
            await greet(one, one)
            assert one.replica.clones.seen_at == str(address_of(clone))


async def test_a_member_that_one_side_has_not_heard_of_is_learnt_from_itself(
    tmp_path: Path,
) -> None:
    async with (
        serving(tmp_path, "one") as one,
        serving(tmp_path, "other") as other,
        serving(tmp_path, "late") as late,
    ):
        await found(one, other)
        await other.replica.move_to(whole_ledger(one.replica))
        await one.replica.append(2, [admission_of(late)])
        await late.replica.move_to(whole_ledger(one.replica))
        await greet(other, late)
        assert late.identity.node_id in other.replica.state.members
        await greet(other, late)
        assert other.peers.get(late.identity.node_id) is not None


async def test_a_member_tells_where_the_others_answer_and_a_stranger_is_told_nothing(
    tmp_path: Path,
) -> None:
    async with (
        serving(tmp_path, "named") as named,
        serving(tmp_path, "one") as one,
        serving(tmp_path, "other") as other,
        serving(tmp_path, "stranger") as stranger,
    ):
        await found(named, one, other)
        await one.replica.move_to(whole_ledger(named.replica))
        await link(named, other)
        await greet(one, named)
        assert address_of(other) in one.handshake.addresses
        await greet(stranger, named)
        assert address_of(other) not in stranger.handshake.addresses


async def test_reasons_that_take_turns_are_logged_once_each(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    async with serving(tmp_path, "one") as one:
        began_s = now_s()
        for turn in range(6):
            monkeypatch.setattr(join_client, "now_s", lambda turn=turn: began_s + 5 * turn)
            one.handshake.joining.set_pending("attic is closed")
            one.handshake.joining.set_pending("attic and cellar are both in sight")
        logged = [r for r in caplog.records if r.message == "waits_outside"]
        assert len(logged) == 2
        assert "both in sight" in one.handshake.joining.pending_reason
        monkeypatch.setattr(join_client, "now_s", lambda: began_s + 26 + join_client.REMEMBERED_S)
        one.handshake.joining.set_pending("attic is closed")
        logged = [r for r in caplog.records if r.message == "waits_outside"]
        assert len(logged) == 3, "it was over, and has come back"


@pytest.mark.parametrize("works", [True, False])
async def test_two_whose_link_works_elsewhere_dont_keep_greeting_each_other(
    works: bool, tmp_path: Path
) -> None:
    """Each hello comes from an address that the link doesn't use, and is no reason for another."""
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two") as two:
        await unite(one, two)
        node, cluster = two.identity.node_id, one.replica.cluster
        peer = one.peers.require(node)
        peer.answered_s = peer.heard_s = now_s() if works else now_s() - 2 * WORKING_S
        elsewhere = Address("127.0.0.2", two.local_view.port)
        one.handshake.note_caller(node, elsewhere, cluster)
        attempt = one.handshake.addresses[elsewhere]
        attempt.begin()
        attempt.tried_s -= FIRST_RETRY_S  # a moment passes
        attempt.put_off(node)
        due_s = attempt.due_s
        one.handshake.note_caller(node, elsewhere, cluster)
        assert (attempt.due_s == due_s) is works, "where the link is dead it is looked at again"
        attempt.tried_s -= LAST_RETRY_S
        one.handshake.note_caller(node, elsewhere, cluster)
        assert attempt.due_s < due_s, "now and then it is looked at in any case"
