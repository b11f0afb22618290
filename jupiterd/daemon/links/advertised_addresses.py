"""The addresses at which each linked daemon of the cluster says that it answers.

Owns which of it can be compared: an address of a container or a VPN, or a link-local one, may be
another machine's too, in another network.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from jupiterd.cluster.membership.shared_addresses import AnnouncedAddresses
from jupiterd.cluster.values.interface_kind import InterfaceKind, is_loopback
from jupiterd.daemon.links.peers import Peer
from jupiterd.ids import NodeId
from jupiterd.net.interface_kinds import kind_of
from jupiterd.net.interfaces import interface_of
from jupiterd.net.scopes import host_in, is_link_local, without_scope_in


def own_advertisement(name: str, machine: str, addresses: Sequence[str]) -> AnnouncedAddresses:
    """Return the comparable addresses at which this node says it answers."""
    kinds = {text: int(kind_of(interface_of(host_in(text)))) for text in addresses}
    return AnnouncedAddresses(name, machine, _places(addresses, kinds))


def peer_advertisements(
    peers: Iterable[Peer], alive: AbstractSet[NodeId]
) -> list[AnnouncedAddresses]:
    """Return the same of each peer that is alive, without those that are linked through a VPN."""
    near = [peer for peer in peers if peer.node in alive and not _is_far(peer)]
    return [
        AnnouncedAddresses(
            peer.name,
            peer.hardware.host if peer.hardware is not None else "",
            _places(peer.addresses, peer.address_kinds),
        )
        for peer in near
    ]


def _is_far(peer: Peer) -> bool:
    kind = peer.address_kinds.get(without_scope_in(str(peer.address)))
    return kind is not None and InterfaceKind.numbered(kind) is InterfaceKind.VPN


def _places(addresses: Iterable[str], kinds: Mapping[str, int]) -> frozenset[tuple[str, str]]:
    return frozenset(
        (host_in(text), text.rpartition(":")[2])
        for text in addresses
        if InterfaceKind.numbered(kinds.get(text, 0)).is_physical
        and not is_link_local(host_in(text))
        and not is_loopback(text)
    )
