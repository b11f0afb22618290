"""Orders on their way to another node, over real TLS."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from jupiterd.daemon.app.node import Node
from jupiterd.daemon.executor.dispatcher import Dispatcher
from jupiterd.daemon.runtime.work_events import (
    Started,
    WorkOrder,
)
from jupiterd.errors import NotFoundError, PeerUnreachableError, RefusedError
from jupiterd.protocol.frames import Progressed
from jupiterd.rpc import peer_pb2
from tests.support.daemon.by_hand import PID, Workers
from tests.support.daemon.two_nodes import TIMEOUT_S, follow, serving, unite

RANK = WorkOrder("c/r1/train/3/0", 1, "train", {}, {}, 3)
ALONE = WorkOrder("c/r1/filter/0", 1, "filter", {}, {})
STEP = Progressed(1, 2, "steps", {})


@asynccontextmanager
async def three(folder: Path) -> AsyncGenerator[tuple[Node, Node, Node, Workers]]:
    """Two that lead one after the other, and one that works."""
    async with (
        serving(folder, "old") as old,
        serving(folder, "new") as new,
        serving(folder, "member") as member,
        asyncio.timeout(TIMEOUT_S),
    ):
        await unite(old, new, member)
        workers = Workers()
        member.order_executor._workers = workers
        yield old, new, member, workers


def dispatcher(node: Node) -> Dispatcher:
    return Dispatcher(node.identity.node_id, node.order_executor, node.peers)


async def test_a_gangs_work_outlives_the_link_to_its_leader(tmp_path: Path) -> None:
    async with three(tmp_path) as (old, new, member, workers):
        there = member.identity.node_id
        events = dispatcher(old).run(there, RANK)
        assert await anext(events) == Started(PID, "cpu", pytest.approx(0.0, abs=1.0))
        await old.peers.unlink(there)
        with pytest.raises(PeerUnreachableError):
            await anext(events)
        follow(new, member)
        followed = dispatcher(new).run(there, replace(RANK, term=2, is_attach=True))
        assert isinstance(await anext(followed), Started)
        workers.say(RANK.id, STEP)
        assert await anext(followed) == STEP
        await dispatcher(new).end(there, 2, 3)
        assert workers.running == set()
        with pytest.raises(RefusedError, match="attempt 3 was ended"):
            await anext(followed)


async def test_all_other_work_ends_with_the_link(tmp_path: Path) -> None:
    async with three(tmp_path) as (old, _, member, workers):
        there = member.identity.node_id
        events = dispatcher(old).run(there, ALONE)
        assert isinstance(await anext(events), Started)
        await old.peers.unlink(there)
        with pytest.raises(PeerUnreachableError):
            await anext(events)
        await workers.all_ended()


async def test_what_does_not_run_there_is_not_followed(tmp_path: Path) -> None:
    async with three(tmp_path) as (_, new, member, workers):
        there = member.identity.node_id
        follow(new, member)
        with pytest.raises(NotFoundError, match="nothing runs here"):
            await anext(dispatcher(new).run(there, replace(RANK, is_attach=True)))
        assert workers.running == set()


async def test_a_leader_that_was_replaced_ends_no_attempt(tmp_path: Path) -> None:
    async with three(tmp_path) as (old, new, member, workers):
        there = member.identity.node_id
        events = dispatcher(old).run(there, RANK)
        await anext(events)
        follow(new, member)
        followed = dispatcher(new).run(there, replace(RANK, term=2, is_attach=True))
        await anext(followed)
        with pytest.raises(RefusedError, match="this node follows"):
            await dispatcher(old).end(there, 1, 3)
        follow(old, member)
        with pytest.raises(RefusedError, match="after term 2"):
            await dispatcher(old).end(there, 1, 3)
        assert workers.running == {RANK.id}
        with pytest.raises(RefusedError, match="another leader follows"):
            await anext(events)


async def test_an_order_over_a_link_that_was_closed_says_whom_it_was_for(tmp_path: Path) -> None:
    async with three(tmp_path) as (old, _, member, _):
        there = member.identity.node_id
        await old.peers.require(there).channels.close()
        with pytest.raises(PeerUnreachableError, match="member can't be reached: the link was"):
            await anext(dispatcher(old).run(there, RANK))
        with pytest.raises(PeerUnreachableError, match="member can't be reached: the link was"):
            await dispatcher(old).end(there, 1, 3)


async def test_a_new_leader_s_order_waits_for_its_heartbeat(tmp_path: Path) -> None:
    async with three(tmp_path) as (old, new, member, workers):
        follow(old, member, term=1)
        events = dispatcher(new).run(member.identity.node_id, replace(ALONE, term=2))
        first = asyncio.ensure_future(anext(events))
        done, _ = await asyncio.wait([first], timeout=0.2)
        assert (done, workers.running) == (set(), set())
        follow(new, member, term=2)
        assert isinstance(await first, Started)


@pytest.mark.parametrize("term", [1, 2])
async def test_an_order_of_a_member_that_nobody_follows_is_refused_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, term: int
) -> None:
    monkeypatch.setattr("jupiterd.daemon.membership.followed_leader.HEARD_WITHIN_S", 0.05)
    async with three(tmp_path) as (old, new, member, workers):
        there = member.identity.node_id
        follow(old, member, term=2)
        with pytest.raises(RefusedError, match=f"order of term {term} of .* follows .* in term 2"):
            await anext(dispatcher(new).run(there, replace(ALONE, term=term)))
        with pytest.raises(RefusedError, match="an order of"):
            await dispatcher(new).prepare(there, peer_pb2.PrepareRanksRequest())
        assert workers.running == set()
        assert member.order_executor._fencing._highest.term == 0
        assert member.refusals.to_plain() == {"refused": 2}
