"""Making two nodes' ledgers equal, over real TLS."""

import asyncio
import math
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import CycleStarted, PairingWindowSet
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.ledger import anti_entropy
from jupiterd.daemon.ledger.anti_entropy import COPY_TIMEOUT_S
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.ids import ClusterId, CycleId
from jupiterd.rpc import peer_pb2
from tests.support.daemon.two_nodes import (
    TIMEOUT_S,
    admission_of,
    found,
    serving,
    unite,
    whole_ledger,
)


def long_fact(number: int) -> CycleStarted:
    """A fact that leaves room for few others in one message."""
    return CycleStarted(
        CycleId(f"{number:016}"), "python", "x" * 200_000, 1, "1m", 1, "2026-01-01T00:00:00Z"
    )


async def equal(one: Node, other: Node) -> None:
    """Wait until both hold the same entries."""
    async with asyncio.timeout(TIMEOUT_S):
        while one.replica.ledger.head() != other.replica.ledger.head():
            await other.replica.changed_since(other.replica.version)


async def test_each_side_gets_what_it_lacks(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        await one.replica.append(1, [PairingWindowSet(is_open=False, edit=1)])
        await other.replica.append(2, [PairingWindowSet(is_open=True, edit=2)])
        other.anti_entropy.request(one.identity.node_id)
        await equal(one, other)
        assert one.replica.state == other.replica.state
        assert one.replica.state.window_edit == 2


async def test_more_than_one_message_holds_comes_over_in_several(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        for number in range(12):
            await one.replica.append(1, [long_fact(number)])
        other.anti_entropy.request(one.identity.node_id)
        await equal(one, other)
        assert len(other.replica.state.cycles) == 12


async def test_more_than_one_message_holds_is_sent_in_several(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        for number in range(12):
            await one.replica.append(1, [long_fact(number)])
        one.anti_entropy.request(other.identity.node_id)
        await equal(one, other)
        assert len(other.replica.state.cycles) == 12


async def test_an_entry_spreads_to_everybody_and_its_copies_are_counted(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, "one") as one,
        serving(tmp_path, "two") as two,
        serving(tmp_path, "three") as three,
    ):
        await unite(one, two, three)
        entry = await one.replica.append(1, [PairingWindowSet(is_open=False, edit=1)])
        assert await one.anti_entropy.spread(entry) >= 2
        await equal(one, two)
        await equal(one, three)


async def test_alone_there_is_one_copy_and_nothing_to_wait_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(anti_entropy, "COPY_TIMEOUT_S", 10 * TIMEOUT_S)
    async with serving(tmp_path, "one") as one:
        await found(one)
        entry = await one.replica.append(1, [PairingWindowSet(is_open=False, edit=1)])
        async with asyncio.timeout(TIMEOUT_S):
            assert await one.anti_entropy.spread(entry) == 1


async def test_a_new_leader_unites_what_everybody_has_before_it_writes(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, "one") as one,
        serving(tmp_path, "two") as two,
        serving(tmp_path, "three") as three,
    ):
        await unite(one, two, three)
        await two.replica.append(5, [PairingWindowSet(is_open=False, edit=1)])
        await three.replica.append(6, [PairingWindowSet(is_open=True, edit=2)])
        everybody = frozenset(node.identity.node_id for node in (one, two, three))
        await one.anti_entropy.unite(everybody)
        assert one.replica.ledger.highest_term() == 6
        assert one.replica.state.window_edit == 2


async def test_a_node_of_another_cluster_gets_nothing_and_gives_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await found(one)
        await found(other)
        entries, _ = other.replica.lacking({}, 1 << 20)
        request = peer_pb2.ExchangeRequest(cluster=ClusterId("f" * 32), entries=entries)
        reply = await one.anti_entropy.answer(request)
        assert list(reply.entries) == []
        assert list(reply.have) == []
        assert list(one.replica.state.members) == [one.identity.node_id]


async def test_a_peer_that_does_not_answer_holds_up_nobody(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        async with serving(tmp_path, "other") as other:
            await unite(one, other)
        entry = await one.replica.append(1, [PairingWindowSet(is_open=False, edit=1)])
        async with asyncio.timeout(TIMEOUT_S):
            assert await one.anti_entropy.spread(entry) == 1
        assert admission_of(other).node in one.replica.state.members


async def test_who_was_away_longer_than_entries_are_held_takes_a_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupiterd.daemon.ledger.replica.MAX_ENTRIES", 2)
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        await other.replica.append(7, [PairingWindowSet(is_open=True, edit=1)])
        for edit in range(2, 12):
            await one.replica.append(1, [PairingWindowSet(is_open=False, edit=edit)])
        await one.replica.compact()
        async with asyncio.timeout(TIMEOUT_S):
            while one.replica.ledger.head() != other.replica.ledger.head():
                other.anti_entropy.request(one.identity.node_id)
                one.anti_entropy.request(other.identity.node_id)
                await asyncio.sleep(0.01)
        assert other.replica.state == one.replica.state
        assert other.replica.state.window_edit == 11


async def test_who_moves_while_it_answers_tells_nothing_of_its_new_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "far") as far:
        await found(one)
        await found(far, one)
        before = one.replica.cluster

        async def move(_: object) -> int:
            one.replica._take(whole_ledger(far.replica).ledger)
            return 0

        monkeypatch.setattr(one.replica, "absorb", move)
        reply = await one.anti_entropy.answer(peer_pb2.ExchangeRequest(cluster=before))
        assert reply == peer_pb2.ExchangeReply()


async def test_nobody_waits_for_a_second_copy_from_one_that_has_just_been_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        peer = one.peers.require(other.identity.node_id)
        answer = other.anti_entropy.answer
        is_lost = asyncio.Event()

        async def never(request: peer_pb2.ExchangeRequest) -> peer_pb2.ExchangeReply:
            await is_lost.wait()
            return await answer(request)

        other.anti_entropy.answer = never  # type: ignore[method-assign]
        peer.troubled_s = math.inf
        entry = await one.replica.append(1, [PairingWindowSet(is_open=False, edit=1)])
        with monkeypatch.context() as patch:
            patch.setattr(anti_entropy, "COPY_TIMEOUT_S", 10 * TIMEOUT_S)
            async with asyncio.timeout(TIMEOUT_S):
                assert await one.anti_entropy.spread(entry) == 1
        peer.troubled_s = -math.inf
        began_s = now_s()
        assert await one.anti_entropy.spread(entry) == 1
        assert now_s() - began_s >= COPY_TIMEOUT_S
        is_lost.set()
        assert await one.anti_entropy.spread(entry) == 2


async def test_one_whose_stream_broke_is_waited_for_again_once_it_is_heard(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        peer = one.peers.require(other.identity.node_id)
        peer.troubled_s = now_s()
        peer.heard_s = now_s()
        entry = await one.replica.append(1, [PairingWindowSet(is_open=False, edit=1)])
        assert await one.anti_entropy.spread(entry) == 2
