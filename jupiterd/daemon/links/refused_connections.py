"""Who tried to connect to a rank of this machine without being a member of its gang, or too often.

Owns the count and the addresses of the last hour. Doesn't know how anybody is refused.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final

from jupiterd.cluster.health.alerts import AlertCondition
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.runtime.untrusted_input import sanitized_text
from jupiterd.formats import counted
from jupiterd.ids import NodeId
from jupiterd.protocol.frames import ConnectionsRefused

log = logging.getLogger(__name__)

CODE: Final = "gang-knocked"
"""Code of the alarm, and key of its telemetry."""

REPORTED_S: Final = 3600.0
"""How long health reports a refused connection."""

LOGGED_EVERY_S: Final = 60.0
"""A flood is one line a minute."""

MAX_HOSTS: Final = 64
MAX_NAMED: Final = 3
MAX_DETAIL: Final = 200


@dataclass
class RefusedConnections:
    """The connections that this machine's ranks, or another place, refused."""

    event: str = "stranger_at_gang"
    """Name of the log event."""
    _count: int = 0
    _hosts: dict[str, None] = field(default_factory=dict[str, None])
    _last_s: float = float("-inf")
    _logged_s: float = float("-inf")

    def note(self, refused: ConnectionsRefused, order: str = "") -> None:
        """Count connections that a rank refused; `order`: the id of its work, if it is one."""
        now = now_s()
        if now - self._last_s > REPORTED_S:
            self._count, self._hosts = 0, {}
        self._last_s = now
        self._count += refused.count
        for host in filter(_is_address, refused.hosts):
            if len(self._hosts) < MAX_HOSTS:
                self._hosts[host] = None
        if now - self._logged_s >= LOGGED_EVERY_S:
            self._logged_s = now
            extra = {"tries": self._count, "hosts": list(self._hosts)[:MAX_NAMED]}
            log.warning(self.event, extra={"order": order, **extra} if order else extra)

    def detail(self) -> str:
        """Return the last hour's count and addresses as text; empty where nothing was refused."""
        if now_s() - self._last_s > REPORTED_S:
            return ""
        named = list(self._hosts)[:MAX_NAMED]
        more = len(self._hosts) - len(named)
        rest = [counted(more, "other address", "other addresses")] if more else []
        whose = f", of {', '.join([*named, *rest])}" if named else ""
        return f"{counted(self._count, 'try', 'tries')}{whose}"


def refused_finding(
    node: NodeId, name: str, detail: object, since: str, code: str = CODE
) -> Iterator[AlertCondition]:
    """Yield the health finding of connections that a member's ranks, or another place, refused.

    Args:
        node: the member.
        name: what people call it.
        detail: what that member says, if anything.
        since: the start of its daemon, from which it counts.
        code: what the alarm is called.
    """
    if isinstance(detail, str) and detail:
        text = sanitized_text(detail, MAX_DETAIL)
        yield AlertCondition(code, node, name, text, cause=f"{since} {text}")


def _is_address(host: str) -> bool:
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True
