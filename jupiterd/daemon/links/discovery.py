"""How a daemon finds others: by multicast, and at the addresses that somebody named.

Owns putting the two together. Doesn't know what is said to whoever is found (`handshake`).
"""

from typing import TYPE_CHECKING

from jupiterd.net.combined_discovery import merge
from jupiterd.net.mdns import by_mdns
from jupiterd.ports import Discovery

if TYPE_CHECKING:
    from jupiterd.daemon.app.node import Node


def discovery_of(node: "Node") -> Discovery:
    """Return every way by which this node finds others."""
    settings = node.settings
    node.greeter.unreached.named = node.named.meant
    multicast = by_mdns(
        loopback_only=settings.local,
        interfaces=settings.interface,
        scope=settings.scope,
        announced=node.greeter.unreached.announced,
    )
    return merge(*multicast, node.named)
