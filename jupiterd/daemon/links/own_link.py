"""Whether this machine's own link is why it reaches nobody.

Owns putting together how the others were reached and how the interfaces are now. Doesn't know the
rule (`cluster.own_link`).
"""

import logging
from collections.abc import Mapping

from jupiterd.cluster.links.links import Links
from jupiterd.cluster.links.own_link import Interface, Other, Outage, Way, outage
from jupiterd.cluster.membership.membership import Liveness
from jupiterd.daemon.links.interface_states import interface_states
from jupiterd.ids import NodeId
from jupiterd.net.interface_kinds import kind_of
from jupiterd.net.scopes import is_link_local, without_scope

log = logging.getLogger(__name__)


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
        return None  # nothing needs to be asked of the system
    try:
        return outage(seen, _interfaces())
    except OSError as error:  # what can't be seen isn't out
        log.debug("interfaces_unknown", extra={"reason": str(error)})
        return None


def _paths_of(links: Links | None) -> tuple[Way, ...]:
    if links is None:
        return ()
    return tuple(
        Way(path.interface, without_scope(path.source), kind_of(path.interface))
        for path in links.paths
    )


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
