"""A join token lets a machine into a closed cluster, and into no other."""

import asyncio
from dataclasses import replace
from pathlib import Path

from jupiterd.cluster.facts.facts import PairingWindowSet, TokenIssued
from jupiterd.cluster.health.health import judge
from jupiterd.cluster.ledger.tokens import Token, parse_token
from jupiterd.cluster.membership.token_wait import PATIENCE_S
from jupiterd.daemon.app.node import Node
from jupiterd.ids import ClusterId
from tests.support.daemon.two_nodes import admission_of, found, lead, serving
from tests.unit.daemon.membership.test_handshake import STOPPED, WORK, greet


async def closed(node: Node) -> None:
    """Found a cluster that lets nobody in."""
    await found(node, facts=(PairingWindowSet(is_open=False, edit=1),))
    await lead(node)


async def token_of(node: Node, uses: int = 1) -> Token:
    made = await node.commands.execute_here("cluster.token", {"uses": uses})
    return parse_token(made["token"])


async def test_who_has_the_token_is_let_in(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "new") as new:
        await closed(one)
        new.handshake.joining.token = await token_of(one)
        await greet(new, one)
        assert new.replica.cluster == one.replica.cluster
        admitted = one.replica.state.members[new.identity.node_id]
        assert (admitted.token, admitted.reason) == (
            new.handshake.joining.token.id,
            f"it has the join token {new.handshake.joining.token.id[:8]}",
        )
        assert dict(one.replica.state.tokens) == {}


async def test_who_was_let_in_and_crashed_before_it_moved_is_let_in_again(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "new") as new:
        await closed(one)
        new.handshake.joining.token = token = await token_of(one)
        await one.replica.append(1, [replace(admission_of(new), token=token.id)])
        await greet(new, one)
        assert new.replica.cluster == one.replica.cluster


async def test_a_used_up_token_lets_in_nobody_else(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, "one") as one,
        serving(tmp_path, "new") as new,
        serving(tmp_path, "late") as late,
    ):
        await closed(one)
        new.handshake.joining.token = late.handshake.joining.token = await token_of(one)
        await greet(new, one)
        await greet(late, one)
        assert late.identity.node_id not in one.replica.state.members
        assert "jupiterctl cluster open" in late.handshake.joining.pending_reason


async def test_a_wrong_secret_lets_in_nobody(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "new") as new:
        await closed(one)
        right = await token_of(one)
        new.handshake.joining.token = Token(right.cluster, right.id, "0" * 32)
        await greet(new, one)
        assert new.identity.node_id not in one.replica.state.members


async def test_a_cluster_that_does_not_know_the_secret_is_not_joined(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "new") as new:
        await found(one)  # open to everybody, and by chance or malice of the right id
        await lead(one)
        token = Token(one.replica.cluster, "1" * 16, "2" * 32)
        await one.replica.append(1, [TokenIssued(token.id, "3" * 32, 1)])
        new.handshake.joining.token = token
        await greet(new, one)
        assert new.replica.cluster != one.replica.cluster
        assert "doesn't know the join token" in new.handshake.joining.pending_reason


async def test_who_has_a_token_joins_no_other_cluster_and_says_which_it_wants(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "other") as other, serving(tmp_path, "new") as new:
        await found(other)
        await lead(other)
        new.handshake.joining.token = Token(ClusterId("a" * 32), "1" * 16, "2" * 32)
        await greet(new, other)
        new.handshake.joining.look_for_wanted()
        assert new.replica.cluster != other.replica.cluster
        (told,) = [w for w in judge(new.observers.health.cluster_view()) if w.code == "sought"]
        assert f"token: aaaaaaaa, and sees only {other.summary().title}" in told.title


async def test_a_cluster_that_was_sought_and_is_found_is_sought_no_more(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "new") as new:
        await closed(one)
        new.handshake.joining.token = await token_of(one)
        new.handshake.joining._began_s -= PATIENCE_S
        new.handshake.joining.look_for_wanted()
        assert "nobody answers yet" in new.handshake.joining.token_wait
        await greet(new, one)
        new.handshake.joining.look_for_wanted()
        assert new.handshake.joining.token_wait == ""


async def test_a_withdrawn_token_lets_in_nobody(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "new") as new:
        await closed(one)
        new.handshake.joining.token = token = await token_of(one)
        done = await one.commands.execute_here("cluster.withdraw", {"token": token.id[:4]})
        assert done == {"schema": "jupiter/v1", "id": token.id}
        await greet(new, one)
        assert new.identity.node_id not in one.replica.state.members


async def test_one_token_lets_in_one_of_two_that_ask_at_once(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, "one") as one,
        serving(tmp_path, "new") as new,
        serving(tmp_path, "late") as late,
    ):
        await closed(one)
        new.handshake.joining.token = late.handshake.joining.token = await token_of(one)
        await asyncio.gather(greet(new, one), greet(late, one))
        assert len(one.replica.state.members) == 2


async def test_who_has_work_of_its_own_keeps_it_and_the_token(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "busy") as busy:
        await closed(one)
        await found(busy, facts=(WORK, STOPPED))
        busy.handshake.joining.token = await token_of(one)
        await greet(busy, one)
        assert len(one.replica.state.tokens) == 1
        assert "has work" in busy.handshake.joining.pending_reason
