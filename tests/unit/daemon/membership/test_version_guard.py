"""Nodes of two versions in one cluster: who works, who leads, who is let in."""

import asyncio
import math
from dataclasses import replace
from pathlib import Path

import pytest

from jupiterd.cluster.membership.election import ElectionTicked
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.app.tasks import version_guard_of
from jupiterd.daemon.gangs.adoption import adopted
from jupiterd.daemon.membership import heartbeat_loop, join_client
from jupiterd.daemon.membership.version_guard import watch_versions
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.errors import PeerUnreachableError
from jupiterd.ids import NodeId
from tests.support.cluster.building import CYCLE
from tests.support.daemon.two_nodes import found, lead, serving, unite, until
from tests.unit.daemon.membership.test_handshake import OPEN, STOPPED, WORK, greet


def run(node: Node, program: str, *others: Node) -> None:
    """Let a node have this version and an engine, as it and the others know it."""
    machine = replace(node.hardware, engines=("torch",), versions=(("jupiterd", program),))
    node.hardware = node.local_view.hardware = machine
    for other in others:
        other.peers.require(node.identity.node_id).hardware = machine


def hear(node: Node, monkeypatch: pytest.MonkeyPatch, *others: Node) -> None:
    """Let a node hear the others just now; no heartbeats run here."""
    here = frozenset(each.identity.node_id for each in (node, *others))
    for name in ("alive", "answering"):
        monkeypatch.setattr(node.heartbeats.membership, name, lambda *_: here)


def roles(node: Node) -> dict[NodeId, str]:
    return {each: fact.role for each, fact in node.replica.state.roles.items()}


async def test_a_member_of_the_next_version_has_no_role_until_it_is_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "new") as new:
        await unite(one, new)
        run(one, "0.1.0", new)
        run(new, "0.2.0", one)
        hear(one, monkeypatch, new)
        await lead(one)
        own, theirs = one.identity.node_id, new.identity.node_id
        await until(lambda: theirs in one.replica.state.roles)
        assert roles(one) == {own: "hybrid", theirs: "idle"}
        assert "the leader 0.1.0" in one.replica.state.roles[theirs].reason
        leading = one.leading
        assert leading is not None
        assert leading.machines.fit_nodes() == [own]
        assert [seat.node for seat in leading.placement.seats()] == [own]
        assert set(leading.machines.well_nodes()) == {own, theirs}  # where second copies may go
        run(new, "0.1.4", one)
        await until(lambda: one.replica.state.roles[theirs].role == "hybrid")
        assert set(leading.machines.fit_nodes()) == {own, theirs}


async def test_a_gang_of_another_version_is_not_adopted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "old") as old:
        await unite(one, old)
        run(one, "0.2.0", old)
        run(old, "0.1.0", one)
        hear(one, monkeypatch, old)
        await lead(one)
        leading = one.leading
        assert leading is not None
        order = leading.calls.order(CYCLE, "1/train/rank-0", "train", {})
        with pytest.raises(PeerUnreachableError, match="another version"):
            async with adopted(leading.machines, leading.calls, [(old.identity.node_id, order)]):
                pass


async def test_a_leader_that_is_outnumbered_for_a_while_steps_aside_and_stands_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        serving(tmp_path, "one") as one,
        serving(tmp_path, "two") as two,
        serving(tmp_path, "three") as three,
    ):
        await unite(one, two, three)
        for node, program in ((one, "0.1.0"), (two, "0.2.0"), (three, "0.1.0")):
            run(node, program, *({one, two, three} - {node}))
        hear(one, monkeypatch, two, three)
        asked = list[float]()

        async def step_aside(*_: object) -> None:
            asked.append(now_s())

        monkeypatch.setattr(one.heartbeats, "step_aside", step_aside)
        guard = version_guard_of(one)

        async with asyncio.TaskGroup() as group:
            looks = watch_versions(
                guard, lambda: one.leading is not None, one.step_aside, 0.01, 0.1
            )
            watching = group.create_task(looks)
            await lead(one)
            assert guard.is_of_most()
            upgraded_s = now_s()
            run(three, "0.2.0", one, two)
            await until(lambda: bool(asked))
            watching.cancel()
        assert asked[0] - upgraded_s >= 0.1
        assert not guard.is_of_most()
        assert version_guard_of(two).is_of_most()


async def test_a_newcomer_two_minor_versions_away_waits_outside_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "new") as new:
        run(one, "0.1.0")
        await found(one, facts=(WORK, STOPPED, OPEN))
        await lead(one)
        monkeypatch.setattr(join_client, "__version__", "0.3.1")
        await greet(new, one)
        assert new.identity.node_id not in one.replica.state.members
        assert "it runs jupiterd 0.3.1" in new.handshake.joining.pending_reason
        assert "upgrade this cluster first" in new.handshake.joining.pending_reason
        monkeypatch.setattr(join_client, "__version__", "0.2.1")
        await greet(new, one)
        assert new.identity.node_id in one.replica.state.members


@pytest.mark.parametrize("may_stand", [True, False])
async def test_who_has_stepped_aside_leads_no_more_and_stands_again_where_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, may_stand: bool
) -> None:
    monkeypatch.setattr(heartbeat_loop, "ASIDE_S", 0.05)  # nobody else is here to take over
    async with serving(tmp_path, "one") as one:
        election = one.heartbeats.election
        one.heartbeats._act(election.step(now_s() + 30, ElectionTicked()))
        assert one.leading is not None
        await one.heartbeats.step_aside(lambda: may_stand)
        assert one.leading is None
        assert math.isfinite(election.wake_at) is may_stand
