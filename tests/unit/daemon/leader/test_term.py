"""What a leader waits for, and for whom it doesn't."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import ClusterFounded
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.leader import term
from jupiterd.daemon.ledger import anti_entropy
from jupiterd.daemon.runtime.work_events import CheckpointStored, SaveRequest
from jupiterd.errors import DiskFullError, NoLeaderError
from jupiterd.ids import CycleId, NodeId
from tests.support.cluster.building import CYCLE, opened, started
from tests.support.daemon.two_nodes import (
    EVERYTHING_BYTES,
    TIMEOUT_S,
    admission_of,
    found,
    lead,
    serving,
    unite,
    until,
)

EPOCH = 3
WISH = SaveRequest(0, 10 * TIMEOUT_S)
"""Whoever waits for what a silent member keeps doesn't come back while the test runs."""


def deaf(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a node answer nothing, as one that is frozen; its machine keeps the connections."""

    async def never(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(node.order_executor, "end", never)
    monkeypatch.setattr(node.anti_entropy, "answer", never)


async def test_a_gang_is_ended_without_waiting_for_a_member_that_has_fallen_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        await lead(one)
        assert one.leading is not None
        gang = own, silent = one.identity.node_id, other.identity.node_id
        asked: list[NodeId] = []

        async def kept(node: NodeId, *_: object) -> CheckpointStored | None:
            asked.append(node)
            return None

        monkeypatch.setattr(one.order_executor, "end", kept)
        deaf(other, monkeypatch)
        one.leading.machines.alive = lambda: frozenset(gang)
        one.leading.machines.answering = lambda: frozenset({own})
        async with asyncio.timeout(TIMEOUT_S):
            await one.leading.calls.end_gang(gang, EPOCH, WISH)
        assert asked == [own]
        assert one.leading.machines.fit_nodes() == [own]
        one.leading.machines.answering = lambda: frozenset(gang)
        assert set(one.leading.machines.fit_nodes()) == {own, silent}


async def test_a_leader_records_nothing_before_its_cluster_is_founded(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        one.leadership.on_lead(1)
        assert one.leading is not None
        await one.leading.term.record(admission_of(other))
        assert isinstance(one.replica.ledger.entries()[0].facts[0], ClusterFounded)
        assert other.identity.node_id in one.replica.state.members
        kept, _ = one.replica.lacking({}, EVERYTHING_BYTES)
        assert one.file.load()[: len(kept)] == kept


async def test_a_leader_that_has_no_room_to_found_its_cluster_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_raws: Sequence[bytes]) -> None:
        raise DiskFullError("no room left for the ledger")

    monkeypatch.setattr(term, "FOUNDING_S", 0.1)
    async with serving(tmp_path, "one") as one:
        monkeypatch.setattr(one.file, "append", full)
        one.leadership.on_lead(1)
        await until(lambda: bool(one.replica.trouble))
        assert one.leading is not None
        with pytest.raises(NoLeaderError, match="yet to be founded: no room left"):
            await one.leading.term.record(started())


async def test_a_new_leader_begins_without_waiting_for_the_silent_one_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        both = frozenset({one.identity.node_id, other.identity.node_id})
        deaf(other, monkeypatch)
        monkeypatch.setattr(one, "alive", lambda: both)
        monkeypatch.setattr(anti_entropy, "UNITE_TIMEOUT_S", 10 * TIMEOUT_S)
        async with asyncio.timeout(TIMEOUT_S):
            await lead(one)


async def test_an_attempt_number_is_given_to_one_cycle_alone(tmp_path: Path) -> None:
    one, other = CycleId("1" * 16), CycleId("2" * 16)
    async with serving(tmp_path, "one") as node:
        await lead(node)
        leading = node.leading
        assert leading is not None
        assert [leading.term.next_attempt(one), leading.term.next_attempt(one)] == [
            1,
            1,
        ]  # it never began
        assert [leading.term.next_attempt(other), leading.term.next_attempt(one)] == [2, 3]


async def test_gangs_that_are_planned_at_the_same_moment_have_attempts_of_their_own(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(started(), opened(4)))
        leading = one._begin_term(1)
        other = CycleId("e" * 16)
        assert [leading.term.next_attempt(CYCLE), leading.term.next_attempt(CYCLE)] == [5, 5]
        assert leading.term.next_attempt(other) == 6
        assert leading.term.next_attempt(CYCLE) == 7, "a node obeys rising ones only"
        await leading.term.record(opened(7))
        assert leading.term.next_attempt(other) == 8
