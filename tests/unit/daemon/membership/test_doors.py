"""Who may join a cluster whose founder or leader was told so at its start."""

from pathlib import Path

from jupiterd.daemon.app.node import Node
from tests.support.daemon.two_nodes import found, lead, serving
from tests.unit.daemon.membership.test_handshake import OPEN, STOPPED, WORK, greet


async def test_a_cluster_that_was_founded_closed_lets_nobody_in(tmp_path: Path) -> None:
    async with serving(tmp_path, "one", closed=True) as one, serving(tmp_path, "new") as new:
        await lead(one)
        await greet(new, one)
        assert list(one.replica.state.members) == [one.identity.node_id]
        assert "is closed" in new.handshake.joining.pending_reason
        await one.commands.execute_here("cluster.open", {})
        await greet(new, one)
        assert new.replica.cluster == one.replica.cluster


async def worked_and_closed(node: Node) -> None:
    await found(node, facts=(WORK, STOPPED))
    await lead(node)
    assert not node.replica.state.window_open


async def test_a_leader_that_trusts_its_network_lets_everybody_in_and_says_so(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one", trust_lan=True) as one, serving(tmp_path, "new") as new:
        await worked_and_closed(one)
        await greet(new, one)
        assert new.replica.cluster == one.replica.cluster
        assert one.observers.health.cluster_view().trusts_lan


async def test_without_either_a_cluster_that_has_worked_is_closed(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "new") as new:
        await worked_and_closed(one)
        await greet(new, one)
        assert new.replica.cluster != one.replica.cluster
        await one.replica.append(1, [OPEN])
        await greet(new, one)
        assert new.replica.cluster == one.replica.cluster
