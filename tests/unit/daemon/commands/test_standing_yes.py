"""A yes that people gave beforehand: to everybody in the network, or to machines in a file."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from jupiterd.cluster.planning.cluster_file_policy import MachineEntry
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.app.tasks import reason_given
from jupiterd.daemon.commands.member_commands import YES
from jupiterd.daemon.membership import trust
from jupiterd.daemon.membership.trust import grant_standing_trust
from tests.support.daemon.two_nodes import address_of, lead, serving
from tests.unit.daemon.commands.test_cluster_file_policy import write
from tests.unit.daemon.membership.test_trust import with_guest

ROUNDS = 3


@asynccontextmanager
async def led_with_guest(folder: Path, **told: bool) -> AsyncGenerator[tuple[Node, Node]]:
    """A founder that leads, and one that walked in to it."""
    async with serving(folder, "founder", **told) as founder, serving(folder, "guest") as guest:
        await with_guest(founder, guest)
        await lead(founder)
        yield founder, guest


async def say(node: Node, patch: pytest.MonkeyPatch, rounds: int = ROUNDS) -> None:
    """Let a node go through those who walked in so many times."""
    left = [rounds]

    async def next_round(_seconds: float) -> None:
        left[0] -= 1
        if not left[0]:
            raise asyncio.CancelledError

    with patch.context() as planted, suppress(asyncio.CancelledError):
        planted.setattr(trust.asyncio, "sleep", next_round)
        await grant_standing_trust(node.replica, partial(reason_given, node), node.commands.execute)


def is_trusted(node: Node, by: Node) -> bool:
    return node.identity.node_id in by.replica.state.roster.trusted


def why(node: Node, by: Node) -> str:
    return by.replica.state.members[node.identity.node_id].reason


async def test_who_trusts_the_network_says_it_to_everybody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with led_with_guest(tmp_path, trust_lan=True) as (founder, guest):
        entries = len(founder.replica.ledger)
        await say(founder, monkeypatch)
        assert is_trusted(guest, by=founder)
        assert why(guest, by=founder) == YES["--trust-lan"]
        assert len(founder.replica.ledger) == entries + 1, "once"


async def test_whoever_answers_where_the_file_of_a_trusted_member_says_gets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with led_with_guest(tmp_path) as (founder, guest):
        write(founder, MachineEntry(name="guest"))
        await say(founder, monkeypatch)
        assert not is_trusted(guest, by=founder), "anybody could take that name"
        write(founder, MachineEntry(name="guest", address="127.0.0.1:1"))
        await say(founder, monkeypatch)
        assert not is_trusted(guest, by=founder), "it answers elsewhere"
        write(founder, MachineEntry(address=str(address_of(guest))))
        await say(founder, monkeypatch)
        assert is_trusted(guest, by=founder)
        assert why(guest, by=founder) == YES["cluster.yaml"]


async def test_nobody_says_it_who_was_not_told_to_or_has_none_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with led_with_guest(tmp_path) as (founder, guest):
        write(
            guest,
            MachineEntry(address=str(address_of(guest))),
            MachineEntry(address=str(address_of(founder))),
        )
        for node in (founder, guest):
            await say(node, monkeypatch)
        assert not is_trusted(guest, by=founder)
