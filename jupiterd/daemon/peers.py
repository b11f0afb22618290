"""The other nodes this daemon speaks with.

Owns one link for each: address, pinned certificate, channels, and the latest it said of itself.
Doesn't know who is a member (the ledger does) or who is alive (`membership` does).
"""

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import msgpack

from jupiterd.cluster.hardware import Hardware
from jupiterd.daemon.heartbeats import BeatStream
from jupiterd.daemon.told import told_addresses, told_text
from jupiterd.errors import PeerUnreachableError
from jupiterd.ids import NodeId, short
from jupiterd.net.channels import PeerChannels
from jupiterd.net.identity import Identity
from jupiterd.net.interfaces import told_source_toward
from jupiterd.net.scopes import host_in, is_link_local, without_scope_in
from jupiterd.ports import Address
from jupiterd.rpc.peer_pb2 import About

log = logging.getLogger(__name__)

MAX_TOLD_OF_ONE = 4
MAX_TOLD_BYTES = 4096
"""Of what a peer says of itself at once."""


@dataclass
class Peer:
    """One link; telemetry is the peer's own word, for display and placement alone."""

    node: NodeId
    name: str
    address: Address
    channels: PeerChannels
    beats: BeatStream
    about: About | None = None
    """What it said of itself, as it was taken up in the fields below."""
    run_nonce: str = ""
    addresses: tuple[str, ...] = ()
    hardware: Hardware | None = None
    telemetry: dict[str, Any] = field(default_factory=dict[str, Any])
    tips: dict[str, int] = field(default_factory=dict[str, int])
    """Its vector of writers, as it last told us."""
    answered_s: float = float("-inf")
    """When it last answered a heartbeat over this link."""
    source: str = ""
    """The address of ours that the link leaves from; empty where it can't be lost."""
    is_stranded: bool = False
    """That address is gone: nothing sent over this link will ever be answered."""
    troubled_until_s: float = 0.0
    """Work isn't placed there before this time: a stream to it has just broken."""

    def take_up(self, telemetry: bytes, about: About | None) -> None:
        """Take up what it says of itself; what can't be read leaves the last reading in place."""
        try:
            if about is not None and about is not self.about:
                self._take_up_about(about)
            if telemetry:
                self.telemetry = _unpacked(telemetry)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            log.debug("telemetry_refused", extra={"node": short(self.node), "reason": str(error)})

    def _take_up_about(self, about: About) -> None:
        self.about = about
        self.run_nonce = told_text(about.run_nonce)
        self.addresses = tuple(map(str, told_addresses(about.addresses)))
        self.name = told_text(about.name) or self.name
        self.hardware = Hardware.from_plain(_unpacked(about.hardware))

    def shown_addresses(self) -> list[str]:
        """Return where it answers: as used by us, then as it says, where that means something."""
        told = [text for text in self.addresses if not is_link_local(host_in(text))]
        return list(dict.fromkeys([str(self.address), *told]))


class Peers:
    """Every link, by node."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self._links: dict[NodeId, Peer] = {}

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

    async def link(self, node: NodeId, name: str, address: Address, certificate_pem: bytes) -> Peer:
        """Make the link, or move one that exists to another address, or off a stranded one."""
        known = self._links.get(node)
        if known is not None and known.address == address and not known.is_stranded:
            known.name = name
            return known
        channels = PeerChannels(self._identity, address, certificate_pem)
        source = told_source_toward(address.host)
        beats = BeatStream(lambda: channels.heartbeat)
        self._links[node] = Peer(node, name, address, channels, beats, source=source)
        if known is not None:
            self._links[node].hardware = known.hardware
            self._links[node].addresses = known.addresses
            known.beats.close()
            await known.channels.close()
        return self._links[node]

    def told_addresses(self, asker: NodeId) -> list[str]:
        """Return where all but the asker answer, as far as we know: what works for us first."""
        others = [peer for peer in self._links.values() if peer.node != asker]
        told = [without_scope_in(str(peer.address)) for peer in others]
        return [*told, *(text for peer in others for text in peer.addresses[:MAX_TOLD_OF_ONE])]

    def strand(self, lost: frozenset[str]) -> list[Peer]:
        """Mark the links that leave from one of these addresses of ours; return those newly so."""
        fresh: list[Peer] = []
        for peer in self._links.values():
            was_stranded, peer.is_stranded = peer.is_stranded, peer.source in lost
            if peer.is_stranded and not was_stranded:
                fresh.append(peer)
        return fresh

    async def unlink(self, node: NodeId) -> None:
        """Close the link to a node; it is made anew when the node is met again."""
        peer = self._links.pop(node, None)
        if peer is not None:
            peer.beats.close()
            await peer.channels.close()

    async def close(self) -> None:
        """Close every link."""
        for node in tuple(self._links):
            with contextlib.suppress(OSError):
                await self.unlink(node)


def _unpacked(told: bytes) -> dict[str, Any]:
    if len(told) > MAX_TOLD_BYTES:
        raise ValueError("it is too large")
    plain = msgpack.unpackb(told, raw=False, strict_map_key=True)
    if not isinstance(plain, dict):
        raise TypeError("it is no map")
    return cast("dict[str, Any]", plain)
