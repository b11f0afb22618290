"""What the leader and its followers say of the door and of the tokens."""

import json
from pathlib import Path

from jupiterd.cluster.ledger.tokens import LIFETIME_S, parse_token
from jupiterd.cluster.membership.pairing_window import OPEN_S
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.runtime.telemetry import MAX_TELEMETRY_BYTES
from jupiterd.daemon.view.local_view import MAX_TIMED_TOKENS
from tests.support.daemon.shown import status_of
from tests.support.daemon.two_nodes import lead, serving, unite
from tests.unit.daemon.membership.test_handshake import OPEN, STOPPED, WORK


def cluster_of(node: Node) -> dict[str, object]:
    return status_of(node)["cluster"]


def hear_the_leader(follower: Node, leader: Node) -> None:
    message = leader.heartbeats.message(follower.identity.node_id)
    message.leader, message.term = leader.identity.node_id, 1
    follower.heartbeats.heard(leader.identity.node_id, message)
    assert follower.heartbeats.election.leader == leader.identity.node_id


async def test_a_follower_tells_the_time_left_by_the_leaders_clock(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two") as two:
        await unite(one, two)
        await one.replica.append(1, [WORK, STOPPED, OPEN])
        await two.anti_entropy.send_roster(two.peers.require(one.identity.node_id).channels.control)
        await lead(one)
        made = await one.commands.execute_here("cluster.token", {"uses": 3})
        await one.anti_entropy.send_roster(one.peers.require(two.identity.node_id).channels.control)
        before = cluster_of(two)
        assert before["open"] is True
        assert before["door"]["closes_in_s"] is None, "nobody has said"
        assert before["tokens"][0]["expires_in_s"] is None
        hear_the_leader(two, one)
        for node in (one, two):
            told = cluster_of(node)
            assert OPEN_S - 20 < told["door"]["closes_in_s"] <= OPEN_S
            assert told["door"]["trusts_lan"] is False
            (token,) = told["tokens"]
            assert (token["id"], token["uses"], token["used"]) == (made["id"], 3, 0)
            assert LIFETIME_S - 20 < token["expires_in_s"] <= LIFETIME_S
            assert parse_token(made["token"]).secret not in json.dumps(status_of(node))


async def test_a_follower_knows_that_its_leader_trusts_the_network(tmp_path: Path) -> None:
    async with serving(tmp_path, "one", trust_lan=True) as one, serving(tmp_path, "two") as two:
        await unite(one, two)
        await lead(one)
        await one.commands.execute_here("cluster.close", {})
        await one.anti_entropy.send_roster(one.peers.require(two.identity.node_id).channels.control)
        assert cluster_of(two)["open"] is False
        hear_the_leader(two, one)
        for node in (one, two):
            assert cluster_of(node)["open"] is True
            assert "--trust-lan" in cluster_of(node)["door"]["reason"]


async def test_a_leader_with_many_tokens_still_says_all_the_rest(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await lead(one)
        for _ in range(2 * MAX_TIMED_TOKENS):
            await one.commands.execute_here("cluster.token", {})
        assert len(one.heartbeats.message(one.identity.node_id).telemetry) < MAX_TELEMETRY_BYTES / 2
        assert len(cluster_of(one)["tokens"]) == 2 * MAX_TIMED_TOKENS
