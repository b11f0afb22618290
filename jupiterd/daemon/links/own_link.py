"""Whether this machine's own link is why it reaches nobody.

Owns reading the state of each interface from the operating system (switched on, plugged in, with
which addresses), and putting it together with how the others were reached. Doesn't know the rule
(`cluster.own_link`).
"""

import logging
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import psutil

from jupiterd.cluster.links.links import Links
from jupiterd.cluster.links.own_link import Egress, Interface, Other, Outage, outage
from jupiterd.cluster.membership.failure_detector import Liveness
from jupiterd.ids import NodeId
from jupiterd.net.interface_kinds import kind_of
from jupiterd.net.scopes import is_link_local, without_scope

log = logging.getLogger(__name__)

_FAMILIES: Final = (socket.AF_INET, socket.AF_INET6)


@dataclass(frozen=True)
class InterfaceState:
    """An interface of this machine, be it one that carries nothing (`net.interfaces` omits it)."""

    is_on: bool
    has_link: bool
    """A cable is in, a Wi-Fi is joined. macOS says so of any that is on; it takes the address."""
    addresses: tuple[str, ...]


def own_outage(others: Mapping[NodeId, Liveness], links: Mapping[NodeId, Links]) -> Outage | None:
    """Return what is wrong with this machine's own link, where nobody is reached because of it.

    Args:
        others: whether each member answers; this node isn't among them.
        links: how those were reached that were linked.
    """
    seen = [
        Other(member, liveness is Liveness.ALIVE, _paths_of(links.get(member)))
        for member, liveness in others.items()
    ]
    if not seen or any(other.is_alive for other in seen):
        return None  # the operating system needn't be asked
    try:
        return outage(seen, _interfaces())
    except OSError as error:  # what can't be seen isn't out
        log.debug("interfaces_unknown", extra={"reason": str(error)})
        return None


def _paths_of(links: Links | None) -> tuple[Egress, ...]:
    if links is None:
        return ()
    return tuple(
        Egress(path.interface, without_scope(path.source), kind_of(path.interface))
        for path in links.paths
    )


def interface_states() -> dict[str, InterfaceState]:
    """Return every interface by its name; raises OSError where the system can't be asked."""
    addresses = psutil.net_if_addrs()
    return {
        name: InterfaceState(
            "up" in seen.flags.split(","),
            seen.isup,
            tuple(e.address for e in addresses.get(name, ()) if e.family in _FAMILIES),
        )
        for name, seen in psutil.net_if_stats().items()
    }


def _interfaces() -> dict[str, Interface]:
    return {
        name: Interface(
            state.is_on,
            state.has_link,
            frozenset(6 if ":" in text else 4 for text in state.addresses if not _is_local(text)),
            frozenset(without_scope(text) for text in state.addresses),
        )
        for name, state in interface_states().items()
    }


def _is_local(address: str) -> bool:
    return is_link_local(address) or address.startswith("169.254.")
