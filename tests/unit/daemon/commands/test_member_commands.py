"""Commands about nodes and the cluster, at the leader."""

from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import PairingWindowSet
from jupiterd.daemon.app.node import Node
from jupiterd.errors import ConflictError, NotFoundError, RefusedError, UsageError
from jupiterd.protocol.call_errors import from_rpc
from jupiterd.rpc import peer_pb2
from tests.support.daemon.two_nodes import TIMEOUT_S, lead, serving, unite
from tests.unit.daemon.api.test_peer_service import channels
from tests.unit.daemon.membership.test_handshake import greet


async def led(one: Node, *others: Node) -> None:
    await unite(one, *others)
    await lead(one)


async def test_who_is_removed_is_refused_on_every_call(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await led(one, other)
        done = await one.commands.execute_here("node.remove", {"node": "other"})
        assert done["node"] == other.identity.node_id
        assert set(one.replica.state.members) == {one.identity.node_id}
        way = other.peers.require(one.identity.node_id).channels
        for call in (
            way.heartbeat.Leave(peer_pb2.LeaveRequest(), timeout=TIMEOUT_S),
            way.control.Exchange(peer_pb2.ExchangeRequest(), timeout=TIMEOUT_S),
        ):
            with pytest.raises(Exception, match="is not a member") as refused:
                await call
            assert isinstance(from_rpc(refused.value, "one"), RefusedError)


async def test_who_was_removed_learns_of_it(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await led(one, other)
        await one.commands.execute_here("node.remove", {"node": other.identity.node_id[:8]})
        await one.anti_entropy.send_roster(channels(one, other).control)
        assert other.is_removed
        assert other.observers.health.cluster_view().is_removed
        assert not one.is_removed


async def test_who_was_away_when_it_was_removed_learns_of_it_when_it_is_met(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await led(one, other)
        await one.commands.execute_here("node.remove", {"node": "other"})
        assert not other.is_removed
        await greet(one, other)
        assert other.is_removed


async def test_what_a_removed_node_says_in_return_is_not_taken(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await led(one, other)
        await one.commands.execute_here("node.remove", {"node": "other"})
        await other.replica.append(7, [PairingWindowSet(is_open=True, edit=99)])
        await one.anti_entropy.send_roster(channels(one, other).control)
        assert one.replica.state.window_edit == 0


async def test_removing_a_node_spoils_the_tokens_that_it_knew(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await led(one, other)
        await one.commands.execute_here("cluster.token", {"uses": 0})
        assert len(one.replica.state.tokens) == 1
        await one.commands.execute_here("node.remove", {"node": "other"})
        assert dict(one.replica.state.tokens) == {}


async def test_a_node_is_found_by_the_name_that_people_see(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await led(one, other)
        one.peers.require(other.identity.node_id).name = "renamed"
        done = await one.commands.execute_here("node.remove", {"node": "renamed"})
        assert done["node"] == other.identity.node_id


async def test_opening_a_cluster_that_is_open_anyway_keeps_it_blank(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await led(one)
        await one.commands.execute_here("cluster.open", {})
        assert one.summary().blank
        assert one.summary().open


async def test_the_leader_is_not_removed(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await led(one)
        with pytest.raises(ConflictError, match="one leads the cluster"):
            await one.commands.execute_here("node.remove", {"node": "one"})


NODE_VERBS = {"node.remove": {}, "node.trust": {}, "node.role": {"role": "generator"}}
"""What is done to a member that is named."""


async def test_a_name_that_nobody_or_more_than_one_has_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path / "a", "one") as one, serving(tmp_path / "b", "one") as twin:
        await led(one, twin)
        with pytest.raises(NotFoundError, match="no node is called two"):
            await one.commands.execute_here("node.remove", {"node": "two"})
        for verb, more in NODE_VERBS.items():
            asked = {"node": "one", **more}
            tried = {"verb": verb, "arguments": asked}
            for each, arguments in ((verb, asked), ("dry_run", tried)):
                with pytest.raises(UsageError, match="one could be any of"):
                    await one.commands.execute_here(each, arguments)


async def test_a_pinned_role_is_kept_until_it_is_given_back(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await led(one)
        node = one.identity.node_id
        await one.commands.execute_here("node.role", {"node": "one", "role": "idle"})
        assert one.replica.state.pins[node].role == "idle"
        await one.commands.execute_here("node.role", {"node": "one", "role": "auto"})
        assert one.replica.state.pins[node].role == ""
        with pytest.raises(UsageError, match="king is no role"):
            await one.commands.execute_here("node.role", {"node": "one", "role": "king"})


async def test_a_cluster_is_renamed_as_often_as_people_like(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await led(one)
        for name in ("attic", "lab"):
            await one.commands.execute_here("cluster.rename", {"name": name})
            assert one.summary().label == name
        assert not one.summary().blank
        with pytest.raises(UsageError, match="1 to 64 printable characters"):
            await one.commands.execute_here("cluster.rename", {"name": "\n"})


async def test_the_window_is_opened_and_closed(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await led(one)
        await one.replica.append(1, [PairingWindowSet(is_open=False, edit=1)])
        await one.commands.execute_here("cluster.open", {})
        assert one.replica.state.window_open
        await one.commands.execute_here("cluster.close", {})
        assert not one.replica.state.window_open
