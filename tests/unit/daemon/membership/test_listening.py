"""Whom both ports take for members, and what is told of those that are turned away."""

from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import NodeAdmitted, NodeRemoved
from jupiterd.daemon.links.address_book import save_addresses
from jupiterd.daemon.membership import listening
from jupiterd.daemon.membership.listening import CROWDED, REFUSED
from jupiterd.daemon.runtime.state_dir import StateDir
from jupiterd.ids import NodeId
from jupiterd.net.channels import PeerChannels
from jupiterd.ports import Address
from jupiterd.rpc import peer_pb2
from tests.support.daemon.two_nodes import TIMEOUT_S, address_of, found, link, serving, unite
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
        one.peers.require(two.identity.node_id).addresses = (f"{STRANGER}:47470",)
        known = one.listening._is_members
        assert [known(host) for host in ("127.0.0.1", "10.0.0.2")] == [True] * 2
        assert not known(STRANGER), "a member may say that it is anywhere"


async def test_members_are_also_where_they_call_from_and_this_machine_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "recent_addresses", lambda: [("eth0", "fe80::7%eth0")])
    monkeypatch.setattr(listening, "LOOK_AGAIN_S", -1.0)
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two") as two:
        await unite(one, two)
        known, callers = one.listening._is_members, one.listening.callers
        assert [known(host) for host in ("fe80::7%eth0", "10.0.0.3", "fe80::2%eth0")] == [
            True,
            False,
            False,
        ]
        with callers.known(50000, "fe80::2%eth0"):
            callers.note_member("ipv4:127.0.0.1:50000", two.identity.node_id)
        with callers.known(50001, "10.0.0.3"):
            callers.note_member("ipv4:127.0.0.1:50001", NodeId("c" * 32))
        assert known("fe80::2%eth0")
        assert not known("10.0.0.3"), "who called is no member"


async def test_a_member_s_call_through_the_open_port_tells_where_it_is(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two") as two:
        await unite(one, two)
        way = PeerChannels(two.identity, address_of(one), one.identity.certificate_pem)
        try:
            await way.control.Hello(peer_pb2.HelloRequest(), timeout=TIMEOUT_S)
        finally:
            await way.close()
        assert list(one.listening.callers.hosts(one.listening.is_member)) == ["127.0.0.1"]


async def test_handshakes_read_what_was_worked_out_as_the_ledger_changed(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two") as two:
        await unite(one, two)
        node, roster = two.identity.node_id, one.replica.state.roster
        both = one.listening._certificates()
        assert both == {one.identity.certificate_pem, two.identity.certificate_pem}
        roster.reconsider()
        assert one.listening._certificates() == both
        assert roster._evaluated is None, "nothing is worked out in a thread of gRPC's"
        await one.replica.append(1, [NodeRemoved(node, roster.admissions_of(node), {})])
        assert one.listening._certificates() == {one.identity.certificate_pem}


async def test_who_is_turned_away_is_counted_and_told(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        assert CROWDED not in str(one.observers.alerts.telemetry())
        one.listening._refused(STRANGER, "it holds 16 connections")
        assert one.refusals.to_plain()[REFUSED] == 1
        assert f"1 try, of {STRANGER}" in str(one.observers.alerts.telemetry())
