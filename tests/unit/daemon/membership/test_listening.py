"""Whom both ports take for members, and what is told of those that are turned away."""

from pathlib import Path

import pytest

from jupiterd.cluster.facts import NodeAdmitted
from jupiterd.daemon.address_book import save_addresses
from jupiterd.daemon.membership.listening import CROWDED, REFUSED
from jupiterd.daemon.state_dir import StateDir
from jupiterd.ids import NodeId
from jupiterd.ports import Address
from tests.unit.daemon.two_nodes import found, link, serving, unite
from tests.unit.net.conftest import named_identity

pytestmark = pytest.mark.net

STRANGER = "10.0.0.9"


async def test_the_leaves_of_members_are_trusted_and_nothing_that_is_none(tmp_path: Path) -> None:
    other = named_identity(tmp_path, "other")
    odd = NodeAdmitted(NodeId("b" * 32), "odd", other.certificate_pem, "")
    sound = NodeAdmitted(
        other.node_id, "other", b"around it\n" + other.certificate_pem + b"\nand after", ""
    )
    async with serving(tmp_path, "one") as one:
        assert one.listening._certificates() == frozenset()
        await found(one, facts=(odd, sound))
        own = one.identity.certificate_pem
        assert one.listening._certificates() == {own, other.certificate_pem}


async def test_members_are_where_they_are_linked_and_where_they_were_before_this_start(
    tmp_path: Path,
) -> None:
    StateDir.open(tmp_path / "one").close()
    save_addresses(tmp_path / "one" / "peers.json", [Address("10.0.0.2", 47470)])
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two") as two:
        await unite(one, two)
        await link(one, two)
        one.peers.require(two.identity.node_id).addresses = ("[fe80::2]:47470",)
        known = one.listening._is_members
        assert [known(host) for host in ("127.0.0.1", "10.0.0.2", "fe80::2%eth0")] == [True] * 3
        assert not known(STRANGER)


async def test_who_is_turned_away_is_counted_and_told(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        assert CROWDED not in str(one.outlook.alerts.told())
        one.listening._refused(STRANGER, "it holds 16 connections")
        assert one.refusals.to_plain()[REFUSED] == 1
        assert f"1 try, of {STRANGER}" in str(one.outlook.alerts.told())
