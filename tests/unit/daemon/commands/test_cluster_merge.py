"""Two clusters that have work become one, over real TLS; what happens when, a test decides."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupiterd.cluster.facts.facts import Fact, PairingWindowSet, RolePinned
from jupiterd.cluster.ledger.snapshot import MAX_SNAPSHOT_BYTES
from jupiterd.cluster.membership.cluster_merge import has_agreed
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.ledger.snapshot_transfer import CHUNK_BYTES
from jupiterd.daemon.links.seen_clusters import Outsider
from jupiterd.errors import ConflictError, NoLeaderError, NotFoundError, RefusedError, UsageError
from jupiterd.ids import CycleId, NodeId
from jupiterd.net.call_guard import EACH_MEMBER
from jupiterd.ports import Address
from jupiterd.protocol.commands.member_commands import MergeCluster
from jupiterd.rpc import peer_pb2
from jupiterd.store.ledger_file import LedgerFile
from tests.support.cluster.building import checkpoint, commanded, started, work_done
from tests.support.daemon.two_nodes import TIMEOUT_S, address_of, admission_of, lead, serving, unite
from tests.unit.daemon.api.test_peer_service import channels
from tests.unit.daemon.membership.test_handshake import greet

OPEN = PairingWindowSet(is_open=True, edit=5)
CLOSED = PairingWindowSet(is_open=False, edit=5)
OURS: tuple[Fact, ...] = (
    started(),
    work_done("r1/filter/0"),
    checkpoint("k1"),
    commanded("stopped", 1),
)
CYCLE = CycleId("d" * 16)
ELSEWHERE: tuple[Fact, ...] = (
    replace(started(), cycle=CycleId("e" * 16)),
    replace(commanded("stopped", 1), cycle=CycleId("e" * 16)),
)


async def working(node: Node, *others: Node, facts: tuple[Fact, ...]) -> None:
    """Unite nodes in a cluster that has recorded something, and let the first one lead."""
    await unite(node, *others)
    await node.replica.append(1, facts)
    for other in others:
        await other.anti_entropy.unite(frozenset({node.identity.node_id}))
    await lead(node)


async def merge(node: Node, into: Node, **more: Any) -> dict[str, Any]:
    await greet(node, into)
    arguments = {"cluster": into.replica.cluster[:8], **more}
    return await node.commands.execute_here("cluster.merge", arguments)


async def meet_until(node: Node, other: Node) -> None:
    """Greet until both are in one cluster."""
    for _ in range(10):
        await greet(node, other)
        if node.replica.cluster == other.replica.cluster:
            return
    raise AssertionError("they are in two clusters")


def pin(name: str) -> RolePinned:
    """Something small that people decided, and that must not be lost."""
    return RolePinned(NodeId(name * 32), "idle", 1)


async def test_nobody_is_merged_with_without_consent(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await working(one, facts=(pin("1"), CLOSED))
        await working(other, facts=OURS)
        head = one.replica.ledger.head()
        for more in ({"dry_run": True}, {}):
            with pytest.raises(RefusedError, match="is closed") as refused:
                await merge(other, one, **more)
            assert "jupiterctl cluster open" in refused.value.hint
            assert "--token" in refused.value.hint
        assert one.replica.ledger.head() == head
        assert not list(other.replica.state.merges)


async def test_a_dry_run_tells_and_changes_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await working(one, facts=(*ELSEWHERE, OPEN))
        await working(other, facts=OURS)
        heads = one.replica.ledger.head(), other.replica.ledger.head()
        told = await merge(other, one, dry_run=True)
        assert told["done"] is False
        assert list(told["absorbed"]["nodes"].values()) == ["other"]
        assert [cycle["rounds"] for cycle in told["absorbed"]["cycles"]] == [0]
        assert list(told["into"]["nodes"].values()) == ["one"]
        assert any("both know the domain python" in note for note in told["notes"])
        assert (one.replica.ledger.head(), other.replica.ledger.head()) == heads


async def test_two_clusters_become_one_with_all_nodes_and_all_work(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, "one") as one,
        serving(tmp_path, "other") as other,
        serving(tmp_path, "third") as third,
    ):
        await working(one, facts=(pin("1"), OPEN))
        await working(other, third, facts=OURS)
        assert (await merge(other, one))["done"]
        await meet_until(other, one)
        await meet_until(third, one)
        for node in (one, other, third):
            await node.anti_entropy.unite(frozenset({one.identity.node_id}))
        assert len({node.replica.ledger.head() for node in (one, other, third)}) == 1
        everybody = {node.identity.node_id for node in (one, other, third)}
        for node in (one, other, third):
            assert set(node.replica.state.members) == everybody
            assert set(node.replica.state.cycles) == {CYCLE}
            assert NodeId("1" * 32) in node.replica.state.pins
        assert other.leading is None
        assert has_agreed(one.replica.state, third.replica.cluster, one.replica.cluster) is False


async def test_who_moved_is_there_after_a_restart(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await working(one, facts=(pin("1"), OPEN))
        await working(other, facts=OURS)
        await merge(other, one)
        await meet_until(other, one)
        file = LedgerFile(other.state_dir.ledger)
        again = Replica(other.identity, file)
        assert again.cluster == one.replica.cluster
        assert again.ledger.head() == other.replica.ledger.head()
        file.close()


async def test_who_was_away_brings_what_it_did_meanwhile(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, "one") as one,
        serving(tmp_path, "other") as other,
        serving(tmp_path, "late") as late,
    ):
        await working(one, facts=(pin("1"), OPEN))
        await working(other, late, facts=OURS)
        await other.peers.unlink(late.identity.node_id)
        await late.peers.unlink(other.identity.node_id)
        await merge(other, one)
        await meet_until(other, one)
        await one.replica.append(9, [PairingWindowSet(is_open=False, edit=9)])
        await late.replica.append(7, [checkpoint("late", "k1", tokens=900), pin("7")])
        assert not list(late.replica.state.merges)
        await greet(late, one)
        assert late.replica.cluster != one.replica.cluster, "a stranger's word isn't enough"
        one.leadership.on_step_down("so that a member that late knows leads")
        other.leadership.on_lead(10)
        await meet_until(late, other)
        await greet(one, other)
        await one.anti_entropy.unite(frozenset({other.identity.node_id}))
        for node in (one, late):
            line = node.replica.state.cycles[CYCLE].leaves()
            assert [leaf.key for leaf in line] == ["late"]
            assert NodeId("7" * 32) in node.replica.state.pins


async def test_two_merges_at_once_in_opposite_directions_end_in_one(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await working(one, facts=(pin("1"), OPEN))
        await working(other, facts=(*OURS, OPEN))
        await asyncio.gather(merge(one, other), merge(other, one))
        lesser = min(one.replica.cluster, other.replica.cluster)
        for _ in range(5):
            await greet(one, other)
            await greet(other, one)
        assert {one.replica.cluster, other.replica.cluster} == {lesser}
        for node in (one, other):
            assert CYCLE in node.replica.state.cycles
            assert NodeId("1" * 32) in node.replica.state.pins


async def test_a_token_is_consent_too_and_is_used_up(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await working(one, facts=(pin("1"), CLOSED))
        await working(other, facts=OURS)
        token = (await one.commands.execute_here("cluster.token", {"uses": 1}))["token"]
        await merge(other, one, token=token)
        await meet_until(other, one)
        assert dict(one.replica.state.tokens) == {}


async def test_a_token_of_another_cluster_is_none(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await working(one, facts=(pin("1"), CLOSED))
        await working(other, facts=OURS)
        token = (await other.commands.execute_here("cluster.token", {"uses": 1}))["token"]
        with pytest.raises(UsageError, match="isn't of home"):
            await merge(other, one, token=token)


async def test_a_removed_node_brings_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await working(one, facts=(pin("1"), OPEN))
        await working(other, facts=OURS)
        await one.replica.append(1, [admission_of(other)])
        await one.commands.execute_here("node.remove", {"node": "other"})
        with pytest.raises(RefusedError, match="was removed from home"):
            await merge(other, one)


async def test_a_running_cycle_is_to_be_stopped_first(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await working(one, facts=(pin("1"), OPEN))
        await working(other, facts=OURS)
        other.leadership.on_step_down("so that nobody conducts the cycle")
        await other.replica.append(1, [commanded("running", 9)])
        term = other._begin_term(1).term
        await greet(other, one)
        command = MergeCluster(cluster=one.replica.cluster)
        told = await other.cluster_merge.merge(term, replace(command, dry_run=True))
        assert [found["title"] for found in told["obstacles"]] == [
            f"cycle dddddddd (python) is running in home ({other.replica.cluster[:8]})"
        ]
        with pytest.raises(ConflictError, match="is running"):
            await other.cluster_merge.merge(term, command)


async def test_what_is_not_in_sight_is_said_so(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await working(one, facts=(pin("1"), OPEN))
        await working(other, facts=OURS)
        await greet(other, one)
        with pytest.raises(NotFoundError, match="called nobody") as refused:
            await other.commands.execute_here("cluster.merge", {"cluster": "nobody"})
        assert refused.value.hint == f"in sight: home ({one.replica.cluster[:8]})"


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [peer_pb2.BroughtLedger(cluster="x")],
        [peer_pb2.BroughtLedger(cluster="f" * 32)],
        [peer_pb2.BroughtLedger(cluster="f" * 32), peer_pb2.BroughtLedger(data=b"nonsense")],
    ],
)
async def test_what_is_no_ledger_is_refused(
    messages: list[peer_pb2.BroughtLedger], tmp_path: Path
) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await working(one, facts=(pin("1"), OPEN))
        head = one.replica.ledger.head()

        async def told() -> AsyncIterator[peer_pb2.BroughtLedger]:
            for message in messages:
                yield message

        way = channels(other, one).control
        reply = await way.Bring(told(), timeout=TIMEOUT_S)
        assert reply.failure.code in ("refused", "corrupt-ledger")
        assert one.replica.ledger.head() == head


async def test_a_removed_node_does_not_come_back_with_a_cluster_that_has_it(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, "one") as one,
        serving(tmp_path, "other") as other,
        serving(tmp_path, "gone") as gone,
    ):
        await working(one, facts=(pin("1"), OPEN, admission_of(gone)))
        await one.commands.execute_here("node.remove", {"node": "gone"})
        await working(other, gone, facts=OURS)
        await merge(other, one)
        await meet_until(other, one)
        await greet(gone, one)
        await greet(gone, other)
        assert gone.replica.cluster != one.replica.cluster
        assert gone.identity.node_id not in one.replica.state.members


async def test_whoever_brings_nothing_for_long_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await working(one, facts=(pin("1"), OPEN))
        monkeypatch.setattr("jupiterd.daemon.commands.cluster_merge.SNAPSHOT_TIMEOUT_S", 0.1)

        async def told() -> AsyncIterator[peer_pb2.BroughtLedger]:
            yield peer_pb2.BroughtLedger(cluster="f" * 32)
            await asyncio.sleep(TIMEOUT_S)

        reply = await channels(other, one).control.Bring(told(), timeout=TIMEOUT_S)
        assert reply.failure.code == "timed-out"
        assert [record for record in caplog.records if record.exc_info] == []


async def test_a_leader_is_looked_for_at_addresses_alone_and_not_by_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await working(one, facts=OURS)
        there = Address("192.0.2.7", 1)
        tried: list[Address] = []

        async def ask(address: Address, *_: object) -> peer_pb2.BringReply:
            tried.append(address)
            return peer_pb2.BringReply(leader_addresses=["a-name-to-look-up:1", str(there)])

        monkeypatch.setattr(one.cluster_merge, "_bring_to", ask)
        target = Outsider(other.summary(), address_of(other))
        with pytest.raises(NoLeaderError):
            await one.cluster_merge._bring(target, None, b"")
        assert tried == [address_of(other), there]


async def test_a_crowd_of_clusters_keeps_nobody_from_moving(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await working(one, facts=(*OURS, OPEN))
        await working(other, facts=(pin("2"),))
        await merge(other, one)
        await other.replica.append(1, [pin("3")])
        way = channels(other, one)
        other.handshake.seen.outsiders.clear()
        assert await other.cluster_merge.follow(one.identity.node_id, one.summary(), way)
        await way.close()


def test_the_largest_ledger_passes_the_border_at_once() -> None:
    assert EACH_MEMBER.burst > MAX_SNAPSHOT_BYTES / CHUNK_BYTES + 2
