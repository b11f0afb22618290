"""The other nodes this daemon speaks with.

Owns one link for each: address, pinned certificate, channels, and the latest it said of itself;
and the other paths to it, for `path_monitor` to choose from. Doesn't know who is a member (the
ledger does) or who is alive (`failure_detector` does).
"""

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from jupiterd.cluster.links.links import Links, Path
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.cluster.values.interface_kind import InterfaceKind
from jupiterd.cluster.values.link_quality import LinkQuality, read_qualities
from jupiterd.daemon.links.heartbeat_stream import BeatStream
from jupiterd.daemon.runtime.address_text import parse_address
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.telemetry import read_telemetry, unpacked
from jupiterd.daemon.runtime.untrusted_input import (
    MAX_ADDRESSES_OF_ONE,
    sanitized_addresses,
    sanitized_text,
)
from jupiterd.errors import PeerUnreachableError
from jupiterd.ids import NodeId, short
from jupiterd.net.channels import PeerChannels
from jupiterd.net.identity import Identity
from jupiterd.net.interface_kinds import kind_of
from jupiterd.net.interfaces import announced_source_toward, interface_of
from jupiterd.net.scopes import host_in, is_link_local, without_scope_in
from jupiterd.ports import Address
from jupiterd.rpc.peer_pb2 import About

log = logging.getLogger(__name__)

MAX_ADDRESSES_SENT = 4
BEST_KIND = InterfaceKind.THUNDERBOLT
"""The interface kind assumed of a path's other end until it reports one."""


@dataclass
class Peer:
    """One link; telemetry is the peer's own claim, for display and placement alone."""

    node: NodeId
    name: str
    address: Address
    channels: PeerChannels
    links: Links
    """The paths to it, the one in use and others."""
    about: About | None = None
    """What it said of itself; the fields below are read from it."""
    run_nonce: str = ""
    addresses: tuple[str, ...] = ()
    address_kinds: dict[str, int] = field(default_factory=dict[str, int])
    """Of the interface that each of the addresses belongs to."""
    hardware: Hardware | None = None
    reported_links: dict[str, LinkQuality] = field(default_factory=dict[str, LinkQuality])
    """What it says of its links, by the beginnings of node ids."""
    telemetry: dict[str, Any] = field(default_factory=dict[str, Any])
    tips: dict[str, int] = field(default_factory=dict[str, int])
    """Its vector of writers, as it last reported it."""
    answered_s: float = float("-inf")
    """When it last answered a heartbeat over this link."""
    heard_s: float = float("-inf")
    """When it last beat as a node of the cluster that we are in, whoever began."""
    source: str = ""
    """The address of ours that the link leaves from; empty where it can't be lost."""
    is_stranded: bool = False
    """That address is gone: nothing sent over this link will ever be answered."""
    troubled_s: float = float("-inf")
    """When it was last found not to answer: work isn't placed there for a while."""
    beats: BeatStream = field(init=False)
    _telemetry_read: bytes = b""
    """What the telemetry was read from."""

    def __post_init__(self) -> None:
        """Beat over the channels that are in use at the time."""
        self.beats = BeatStream(lambda: self.channels.heartbeat)

    def update(self, telemetry: bytes, about: About | None) -> None:
        """Store what it says of itself; what can't be read leaves the last reading in place."""
        try:
            if about is not None and about is not self.about:
                self._update_about(about)
            if telemetry and telemetry != self._telemetry_read:
                self.telemetry, self._telemetry_read = read_telemetry(telemetry), telemetry
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            log.debug("telemetry_refused", extra={"node": short(self.node), "reason": str(error)})

    def _update_about(self, about: About) -> None:
        self.about = about
        self.run_nonce = sanitized_text(about.run_nonce)
        self.addresses = tuple(map(str, sanitized_addresses(about.addresses)))
        self.name = sanitized_text(about.name) or self.name
        self.address_kinds = {
            str(address): kind
            for text, kind in islice(
                zip(about.addresses, about.address_kinds, strict=False), MAX_ADDRESSES_OF_ONE
            )
            for address in sanitized_addresses([text])
        }
        self.hardware = Hardware.from_plain(unpacked(about.hardware))
        self.reported_links = read_qualities(unpacked(about.links)) if about.links else {}

    @property
    def shared_host(self) -> str:
        """Its host for a third machine: the one in use, or another that isn't link-local."""
        shared = (
            address.host
            for address in [self.address, *self.paths()]
            if not is_link_local(address.host)
        )
        return next(shared, self.address.host)

    def paths(self) -> list[Address]:
        """Return every address at which it is known to answer, the one in use first."""
        return [parse_address(target) for target in self.links.targets]

    def shown_addresses(self) -> list[str]:
        """Return where it answers: as used by us, then as it says, where that means something."""
        reported = [text for text in self.addresses if not is_link_local(host_in(text))]
        return list(dict.fromkeys([str(self.address), *reported]))


class Peers:
    """Every link, by node."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self._links: dict[NodeId, Peer] = {}
        self._retiring: dict[asyncio.Task[None], PeerChannels] = {}
        """Channels that are closed once the last call over them has ended."""

    @property
    def own(self) -> NodeId:
        """This node, to which there is no link."""
        return self._identity.node_id

    def __iter__(self) -> Iterator[Peer]:
        return iter(tuple(self._links.values()))

    def get(self, node: NodeId) -> Peer | None:
        """Return the link to a node, if there is one."""
        return self._links.get(node)

    def require(self, node: NodeId) -> Peer:
        """Return the link to a node; raises PeerUnreachableError where there is none."""
        peer = self._links.get(node)
        if peer is None:
            raise PeerUnreachableError(f"there is no link to node {short(node)}")
        return peer

    def linked_at(self, address: Address) -> Peer | None:
        """Return the link that uses this address, if one does."""
        return next((peer for peer in self._links.values() if peer.address == address), None)

    async def link(
        self,
        node: NodeId,
        name: str,
        address: Address,
        certificate_pem: bytes,
        members_port: int = 0,
    ) -> Peer:
        """Make the link, or move one that exists to another address, or off a stranded one.

        `members_port` is what the peer keeps for members, so it is tried first; 0: none is known.
        """
        known = self._links.get(node)
        if known is not None and known.address == address and not known.is_stranded:
            known.name = name
            self._use_port(known, members_port)
            return known
        channels = PeerChannels(self._identity, address, certificate_pem, members_port)
        links = known.links if known else Links(decides=self._identity.node_id < node)
        # It has just answered a hello there: until the first heartbeat that counts as an answer.
        met_s = now_s()
        peer = Peer(node, name, address, channels, links, answered_s=met_s, heard_s=met_s)
        if known is not None:
            peer.hardware, peer.addresses = known.hardware, known.addresses
            peer.address_kinds, peer.reported_links = known.address_kinds, known.reported_links
        self._links[node] = peer
        self.learn(peer, address)
        self._take(peer, address, "it answered first")
        if known is not None:
            known.beats.close()
            await known.channels.close()
        return peer

    def learn(self, peer: Peer, address: Address) -> None:
        """Add a path proved to lead to a peer, or update the interface a known one leaves from."""
        source = announced_source_toward(address.host)
        interface = interface_of(source) if source else ""
        kind_number = peer.address_kinds.get(without_scope_in(str(address)), BEST_KIND)
        there = InterfaceKind.numbered(kind_number)
        here = kind_of(interface) if interface else there
        peer.links.learn(now_s(), Path(str(address), source, interface, max(here, there)))

    def move(self, peer: Peer, address: Address) -> PeerChannels:
        """Switch a link to another path; return the old channels, for calls that still run."""
        old, peer.channels = peer.channels, peer.channels.at(address)
        peer.beats.close()
        self._take(peer, address, peer.links.reason)
        return old

    def _use_port(self, peer: Peer, members_port: int) -> None:
        """Try another port first from now on; calls that run end where they are."""
        if members_port in {0, peer.channels.members_port}:
            return
        old, peer.channels = peer.channels, peer.channels.through(members_port)
        peer.beats.close()
        task = asyncio.get_running_loop().create_task(old.retire(), name=f"retire {old.address}")
        self._retiring[task] = old
        task.add_done_callback(self._retiring.pop)

    @staticmethod
    def _take(peer: Peer, address: Address, reason: str) -> None:
        peer.address, peer.is_stranded = address, False
        peer.links.use(str(address), reason)
        peer.source = peer.links.source

    def paths(self) -> list[Address]:
        """Return every address at which any peer is known to answer."""
        return [address for peer in self._links.values() for address in peer.paths()]

    def sources(self) -> frozenset[str]:
        """Return the addresses of ours that any path to any peer leaves from."""
        return frozenset().union(*(peer.links.sources() for peer in self._links.values()))

    def addresses_for(self, asker: NodeId) -> list[str]:
        """Return addresses of all peers but the asker: those in use here, then reported ones."""
        others = [peer for peer in self._links.values() if peer.node != asker]
        in_use = [without_scope_in(str(peer.address)) for peer in others]
        return [*in_use, *(text for peer in others for text in peer.addresses[:MAX_ADDRESSES_SENT])]

    def strand(self, lost: frozenset[str]) -> list[Peer]:
        """Mark the links that leave from one of these addresses of ours; return those newly so.

        One that has another path left isn't stranded: it is moved there at once.
        """
        fresh: list[Peer] = []
        for peer in self._links.values():
            peer.links.lose(lost)
            is_stranded = peer.source in lost and not peer.links.has_another
            was_stranded, peer.is_stranded = peer.is_stranded, is_stranded
            if peer.is_stranded and not was_stranded:
                fresh.append(peer)
        return fresh

    async def unlink(self, node: NodeId) -> None:
        """Close the link to a node; `link` opens another when the node is met again."""
        peer = self._links.pop(node, None)
        if peer is not None:
            peer.beats.close()
            await peer.channels.close()

    async def close(self) -> None:
        """Close every link."""
        for task, channels in tuple(self._retiring.items()):
            task.cancel()
            await channels.close()  # it may not have begun to run
        for node in tuple(self._links):
            with contextlib.suppress(OSError):
                await self.unlink(node)
