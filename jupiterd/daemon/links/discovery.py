"""How a daemon finds others: by multicast, and at the addresses that somebody named.

Owns putting the two together. Doesn't know what is said to whoever is found (`handshake`).
"""

from jupiterd.daemon.links.unreachable_peers import UnreachablePeers
from jupiterd.daemon.runtime.settings import Settings
from jupiterd.net.combined_discovery import merge
from jupiterd.net.mdns import by_mdns
from jupiterd.net.static_discovery import StaticDiscovery
from jupiterd.ports import Discovery


def discovery_of(
    settings: Settings, named: StaticDiscovery, unreached: UnreachablePeers
) -> Discovery:
    """Return every way by which this node finds others."""
    unreached.named = named.meant
    multicast = by_mdns(
        loopback_only=settings.local,
        interfaces=settings.interface,
        scope=settings.scope,
        announced=unreached.announced,
    )
    return merge(*multicast, named)
