"""What this machine refuses, as telemetry for others and as findings for alarms.

Owns putting together who knocked at a gang's port or at ours in vain, and which paths somebody
requested that aren't offered. Doesn't know when either is sent.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from jupiterd.cluster.health.alerts import AlertCondition
from jupiterd.daemon.executor.offered_paths import OfferedPaths
from jupiterd.daemon.links.refused_connections import CODE as KNOCKED
from jupiterd.daemon.links.refused_connections import RefusedConnections, refused_finding
from jupiterd.daemon.membership.listening import CROWDED
from jupiterd.ids import NodeId

REFUSAL_CODES = (KNOCKED, CROWDED)


@dataclass(frozen=True)
class RefusedHere:
    """The refusals of one machine."""

    refused_connections: RefusedConnections
    """At the ports of gangs."""
    crowding: RefusedConnections
    """At the daemon's own port."""
    offered: OfferedPaths

    def telemetry(self) -> dict[str, str]:
        """Return its part of this node's telemetry: alarm code -> text."""
        return {code: detail for code, detail in self._details() if detail}

    def findings(self, own: NodeId, name: str, since: str) -> Iterator[AlertCondition]:
        """Yield this machine's findings; `since` distinguishes this start of it from others."""
        yield from self.offered.findings(own, name)
        for code, detail in self._details():
            yield from refused_finding(own, name, detail, since, code)

    def _details(self) -> tuple[tuple[str, str], ...]:
        return (KNOCKED, self.refused_connections.detail()), (CROWDED, self.crowding.detail())
