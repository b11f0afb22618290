"""A machine leaves its cluster, with all work, for a cluster of its own."""

from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import RolePinned
from jupiterd.cluster.ledger.tokens import Token
from jupiterd.cluster.membership.cluster_merge import leads_us
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.errors import ConflictError, UsageError
from jupiterd.ids import ClusterId, CycleId
from jupiterd.store.ledger_file import LedgerFile
from tests.support.cluster.building import checkpoint, commanded, started, work_done
from tests.support.daemon.two_nodes import lead, serving
from tests.unit.daemon.membership.test_trust import lead_later, with_guest

CYCLE = CycleId("d" * 16)
WORK = (started(), work_done("r1/filter/0"), checkpoint("k1"))


async def with_work(founder: Node, guest: Node, wanted: str = "paused") -> None:
    """Let somebody walk in to a cluster that has work, which is running or not."""
    await with_guest(founder, guest)
    command = () if wanted == "running" else (commanded(wanted, 1),)
    node = guest.identity.node_id
    await founder.replica.append(1, [*WORK, RolePinned(node, "trainer", 1), *command])
    await guest.anti_entropy.unite(frozenset({founder.identity.node_id}))


async def test_it_is_trusted_in_a_cluster_of_its_own_that_knows_all_work(tmp_path: Path) -> None:
    async with serving(tmp_path, "founder") as founder, serving(tmp_path, "guest") as guest:
        await with_work(founder, guest)
        own, before = guest.identity.node_id, guest.replica.cluster
        line = guest.replica.state.cycles[CYCLE].canonical_branch()
        plan = await guest.commands.execute("cluster.leave", {"dry_run": True})
        assert (plan["done"], plan["left"]["nodes"]) == (False, ["founder"])
        assert guest.replica.cluster == before
        done = await guest.commands.execute("cluster.leave", {})
        journals = (guest.replica, _again(guest))
        for replica in journals:
            state = replica.state
            assert replica.cluster == done["founded"]["id"] != before
            assert set(state.members) == state.roster.trusted == {own}
            assert not state.window_open
            assert list(state.cycles[CYCLE].canonical_branch()) == list(line) != []
            assert state.cycles[CYCLE].wanted == "paused"
            assert state.pins[own].role == "trainer"
        await lead_later(guest)
        opened = await guest.commands.execute("cluster.open", {})
        assert opened["open"], "it may decide there"


async def test_a_token_of_the_cluster_that_it_left_is_passed_over_at_the_next_start(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "founder") as founder:
        async with serving(tmp_path, "guest") as guest:
            await with_work(founder, guest)
            await guest.commands.execute("cluster.leave", {})
        left, other = (
            Token(cluster, "1" * 16, "2" * 32)
            for cluster in (founder.replica.cluster, ClusterId("3" * 32))
        )
        async with serving(tmp_path, "guest", join=str(left)) as again:
            assert again.handshake.joining.token is None
        async with serving(tmp_path, "guest", join=str(other)) as again:
            assert again.handshake.joining.token == other
        async with serving(tmp_path, "new", join=str(left)) as new:
            assert new.handshake.joining.token == left


def _again(node: Node) -> Replica:
    """What a start of the daemon would find on its disk."""
    return Replica(node.identity, LedgerFile(node.state_dir.ledger))


async def test_nobody_follows_it_and_nothing_changes_for_those_who_stay(tmp_path: Path) -> None:
    async with serving(tmp_path, "founder") as founder, serving(tmp_path, "guest") as guest:
        await with_work(founder, guest)
        members = dict(founder.replica.state.members)
        await guest.commands.execute("cluster.leave", {})
        assert dict(founder.replica.state.members) == members
        assert not leads_us(founder.summary(), guest.summary())
        assert founder.identity.node_id not in guest.replica.state.members


async def test_nobody_else_can_have_a_machine_leave(tmp_path: Path) -> None:
    async with serving(tmp_path, "founder") as founder, serving(tmp_path, "guest") as guest:
        await with_guest(founder, guest)
        await lead(founder)
        with pytest.raises(UsageError, match=r"unknown command cluster\.leave"):
            await founder.commands.execute_here("cluster.leave", {}, guest.identity.node_id)


async def test_what_runs_would_go_on_twice_so_it_is_paused_first(tmp_path: Path) -> None:
    async with serving(tmp_path, "founder") as founder, serving(tmp_path, "guest") as guest:
        await with_work(founder, guest, wanted="running")
        with pytest.raises(ConflictError, match="is running") as refused:
            await guest.commands.execute("cluster.leave", {"dry_run": True})
        assert "jupiterctl cycle pause" in refused.value.hint


async def test_who_is_alone_has_nothing_to_leave(tmp_path: Path) -> None:
    async with serving(tmp_path, "founder") as founder:
        await lead(founder)
        with pytest.raises(ConflictError, match="the only one"):
            await founder.commands.execute("cluster.leave", {})
