"""Members that can't verify each other, for a snapshot has swallowed an admission; real TLS."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from jupiterd.cluster.facts.facts import NodeRemoved, PairingWindowSet
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.daemon.ledger.snapshot_transfer import fetch_ledger
from jupiterd.rpc import peer_pb2
from tests.support.daemon.two_nodes import TIMEOUT_S, admission_of, serving, unite, whole_ledger
from tests.unit.daemon.api.test_peer_service import channels
from tests.unit.daemon.ledger.test_anti_entropy import equal
from tests.unit.daemon.membership.test_handshake import greet


@pytest.fixture(autouse=True)
def _few_entries_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jupiterd.daemon.ledger.replica.MAX_ENTRIES", 2)


class Three(NamedTuple):
    """One cluster, in which a newcomer came while one member was away."""

    leader: Node
    away: Node
    newcomer: Node


async def sum_up(node: Node) -> None:
    """Write so much that nothing from before is held one by one any more."""
    term = node.replica.ledger.highest_term()
    for _ in range(6):
        edit = node.replica.state.window_edit + 1
        await node.replica.append(term, [PairingWindowSet(is_open=False, edit=edit)])
    await node.replica.compact()


async def bring_in(leader: Node, newcomer: Node) -> None:
    way = channels(newcomer, leader)
    cluster = leader.replica.cluster
    await newcomer.replica.move_to(
        await fetch_ledger(way.control, leader.identity.node_id, cluster)
    )
    await way.close()


@asynccontextmanager
async def three(folder: Path, *, removed: bool = False) -> AsyncGenerator[Three]:
    async with (
        serving(folder, "leader") as leader,
        serving(folder, "away") as away,
        serving(folder, "newcomer") as newcomer,
    ):
        await unite(leader, away)
        await leader.replica.append(2, [admission_of(newcomer)])
        if removed:
            gone, roster = away.identity.node_id, leader.replica.state.roster
            await leader.replica.append(2, [NodeRemoved(gone, roster.admissions_of(gone), {})])
        await sum_up(leader)
        await bring_in(leader, newcomer)
        yield Three(leader, away, newcomer)


async def test_who_was_away_unites_with_a_member_that_was_admitted_meanwhile(
    tmp_path: Path,
) -> None:
    async with three(tmp_path) as (_, away, newcomer):
        assert newcomer.identity.node_id not in away.replica.state.members
        attempt = await greet(away, newcomer)
        assert newcomer.identity.node_id in away.replica.state.members
        assert attempt.wait_s < 1
        await greet(away, newcomer)
        away.anti_entropy.request(newcomer.identity.node_id)
        await equal(newcomer, away)
        assert away.replica.state == newcomer.replica.state


async def test_what_proves_itself_goes_from_hand_to_hand(tmp_path: Path) -> None:
    async with three(tmp_path) as (_, away, newcomer), serving(tmp_path, "fourth") as fourth:
        await newcomer.replica.append(4, [admission_of(fourth)])
        await sum_up(newcomer)
        await bring_in(newcomer, fourth)
        await greet(away, fourth)
        assert fourth.identity.node_id in away.replica.state.members


async def test_what_was_witnessed_is_known_after_a_restart(tmp_path: Path) -> None:
    async with three(tmp_path) as (_, away, newcomer):
        await greet(away, newcomer)
        again = Replica(away.identity, away.file)
        assert again.state == away.replica.state
        assert again.ledger.head() == away.replica.ledger.head()
        assert newcomer.identity.node_id in again.state.members


async def test_members_tell_each_other_what_they_have_witnessed(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, "one") as one,
        serving(tmp_path, "two") as two,
        serving(tmp_path, "new") as new,
    ):
        await unite(one, two)
        admission = await one.replica.append(2, [admission_of(new)])
        fork = one.replica.ledger
        one.replica._take(whole_ledger(two.replica).ledger)  # the disk was lost; the proof wasn't
        assert await one.replica.witness([admission.raw]) == 1
        assert one.replica.ledger.head() != fork.head()
        two.anti_entropy.request(one.identity.node_id)
        await equal(one, two)
        assert new.identity.node_id in two.replica.state.members


async def test_a_removed_node_learns_of_it_from_one_that_it_knows(tmp_path: Path) -> None:
    async with three(tmp_path, removed=True) as (leader, away, _):
        assert not away.is_removed
        await greet(leader, away)
        assert away.is_removed


async def test_a_removed_node_learns_of_it_from_one_that_it_has_never_met(tmp_path: Path) -> None:
    async with three(tmp_path, removed=True) as (_, away, newcomer):
        await greet(away, newcomer)
        assert away.is_removed
        await greet(newcomer, away)
        assert away.identity.node_id not in newcomer.replica.state.members


async def test_a_stranger_is_told_of_nobody(tmp_path: Path) -> None:
    async with three(tmp_path) as (leader, _, _), serving(tmp_path, "stranger") as stranger:
        way = channels(stranger, leader)
        request = peer_pb2.RosterRequest(cluster=leader.replica.cluster)
        async with asyncio.timeout(TIMEOUT_S):
            reply = await way.control.AskRoster(request)
        assert list(reply.entries) == []
        await way.close()
