"""The links to other nodes."""

from pathlib import Path

import pytest

from jupiterd.daemon.links.peers import Peers
from jupiterd.errors import PeerUnreachableError
from jupiterd.net.identity import Identity
from jupiterd.ports import Address

HERE = Address("127.0.0.1", 4000)
THERE = Address("127.0.0.1", 4001)


@pytest.fixture
def other(tmp_path: Path) -> Identity:
    (tmp_path / "other").mkdir()
    return Identity.load_or_create(tmp_path / "other" / "key.pem")


@pytest.fixture
def peers(tmp_path: Path) -> Peers:
    return Peers(Identity.load_or_create(tmp_path / "key.pem"))


async def test_a_link_at_the_same_address_is_kept(peers: Peers, other: Identity) -> None:
    first = await peers.link(other.node_id, "one", HERE, other.certificate_pem)
    second = await peers.link(other.node_id, "renamed", HERE, other.certificate_pem)
    assert first is second
    assert peers.require(other.node_id).name == "renamed"
    assert [peer.node for peer in peers] == [other.node_id]
    await peers.close()


async def test_a_link_moves_with_its_node(peers: Peers, other: Identity) -> None:
    first = await peers.link(other.node_id, "one", HERE, other.certificate_pem)
    first.tips = {"writer": 3}
    moved = await peers.link(other.node_id, "one", THERE, other.certificate_pem)
    assert moved is not first
    assert moved.tips == {}, "a daemon that moved may have been restored from a backup"
    assert peers.linked_at(THERE) is moved
    assert peers.linked_at(HERE) is None
    await peers.close()


async def test_a_node_without_a_link_is_named(peers: Peers, other: Identity) -> None:
    assert peers.get(other.node_id) is None
    with pytest.raises(PeerUnreachableError, match=other.node_id[:8]):
        peers.require(other.node_id)


async def test_an_unlinked_node_is_forgotten(peers: Peers, other: Identity) -> None:
    await peers.link(other.node_id, "one", HERE, other.certificate_pem)
    await peers.unlink(other.node_id)
    await peers.unlink(other.node_id)
    assert list(peers) == []


async def test_links_may_change_while_they_are_gone_through(peers: Peers, other: Identity) -> None:
    await peers.link(other.node_id, "one", HERE, other.certificate_pem)
    for peer in peers:
        await peers.unlink(peer.node)
    assert list(peers) == []


async def test_a_link_from_an_address_that_is_gone_is_made_anew(
    peers: Peers, other: Identity
) -> None:
    first = await peers.link(other.node_id, "one", HERE, other.certificate_pem)
    assert first.source == "", "loopback can't be lost"
    first.source = "192.0.2.1"
    assert peers.strand(frozenset({"192.0.2.9"})) == []
    assert peers.strand(frozenset({"192.0.2.1"})) == [first]
    assert peers.strand(frozenset({"192.0.2.1"})) == [], "once for each time"
    again = await peers.link(other.node_id, "one", HERE, other.certificate_pem)
    assert again is not first
    assert not again.is_stranded
    await peers.close()


async def test_a_link_is_kept_when_its_address_has_come_back(peers: Peers, other: Identity) -> None:
    first = await peers.link(other.node_id, "one", HERE, other.certificate_pem)
    first.source = "192.0.2.1"
    peers.strand(frozenset({"192.0.2.1"}))
    peers.strand(frozenset())
    assert await peers.link(other.node_id, "one", HERE, other.certificate_pem) is first
    await peers.close()


async def test_a_link_with_another_way_left_is_not_stranded(peers: Peers, other: Identity) -> None:
    peer = await peers.link(other.node_id, "one", HERE, other.certificate_pem)
    peers.learn(peer, THERE)
    peer.source = "192.0.2.1"
    assert peers.strand(frozenset({"192.0.2.1"})) == []
    assert not peer.is_stranded
    await peers.close()


async def test_others_are_told_of_an_address_that_they_can_write_alike(
    peers: Peers, other: Identity
) -> None:
    on_this_wire = Address("fe80::1%lo", 4000)
    peer = await peers.link(other.node_id, "one", on_this_wire, other.certificate_pem)
    assert peer.shared_host == "fe80::1%lo", "there is no other"
    peers.learn(peer, HERE)
    assert peer.shared_host == HERE.host
    assert peer.address == on_this_wire, "the way in use stays"
    await peers.close()


async def test_a_port_for_members_is_used_once_it_is_known_and_calls_under_way_end_where_they_are(
    peers: Peers, other: Identity
) -> None:
    first = await peers.link(other.node_id, "one", HERE, other.certificate_pem)
    before = first.channels
    assert before.members_port == 0
    again = await peers.link(other.node_id, "one", HERE, other.certificate_pem, 4002)
    assert again is first
    assert first.channels.members_port == 4002
    assert first.channels.address == HERE
    assert not before._closed.is_set()
    assert (await peers.link(other.node_id, "one", HERE, other.certificate_pem)) is first
    assert first.channels.members_port == 4002, "it wasn't told this time"
    assert peers.move(first, THERE).members_port == first.channels.members_port
    await peers.close()
    assert before._closed.is_set()
