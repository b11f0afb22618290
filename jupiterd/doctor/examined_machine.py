"""The machine that is examined: its daemon's settings and status, which every check gets.

Owns this record, and reading a status document for checks. Doesn't know any check, or ask the
daemon.
"""

import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from jupiterd.daemon.runtime.settings import Settings

DISCOVERY_PORT: Final = 5353
"""UDP port of multicast DNS."""

MIB: Final = 1 << 20

Row = Mapping[str, Any]


@dataclass(frozen=True)
class ExaminedMachine:
    """One machine, and its daemon's status."""

    state_dir: Path
    port: int
    """The port on which jupiterd listens for other nodes, or would; 0: the system chooses."""
    local: bool = False
    """Whether it uses only the loopback interface."""
    interfaces: tuple[str, ...] = ()
    """The interfaces that it uses; empty: all."""
    status: Row | None = None
    """The status document of the running daemon; None: no daemon answers."""
    free_disk_bytes: int = 0
    """Bytes that must stay free on the disk of the state folder."""
    rank_variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """What `env:` gives the ranks that train here."""
    system: str = "Linux"
    """`Linux` or `Darwin`."""

    @property
    def members(self) -> list[Row]:
        """Return the nodes of the cluster, without those that wait for admission."""
        rows = (self.status or {}).get("nodes", [])
        return [row for row in rows if row.get("state") != "pending"]

    @property
    def own(self) -> Row:
        """Return this node's row; empty: no daemon answers."""
        own = ((self.status or {}).get("node") or {}).get("id")
        return next((row for row in self.members if row.get("id") == own), {})

    @property
    def others(self) -> list[Row]:
        """Return the rows of the other nodes."""
        return [row for row in self.members if row is not self.own]

    def complains_of(self, code: str) -> bool:
        """Return whether the daemon's health entries include this code."""
        return any(line.get("code") == code for line in (self.status or {}).get("health", ()))

    def paths(self) -> Iterator[tuple[Row, Row]]:
        """Yield (node, path) for each known path to another node that is alive."""
        for node in self.others:
            if node.get("state") != "alive":
                continue
            for path in node.get("links") or ():
                yield node, path


def machine_of(settings: Settings, status: Row | None, port: int) -> ExaminedMachine:
    """Return the record of this machine; status: the daemon's document; None: no daemon answers."""
    return ExaminedMachine(
        state_dir=settings.state_dir,
        port=port,
        local=settings.local,
        interfaces=settings.interface,
        status=status,
        free_disk_bytes=settings.free_disk_mib * MIB,
        rank_variables=settings.env,
        system=platform.system(),
    )


def name_of(node: Row) -> str:
    """Return a node's name, or its id if it has none."""
    return str(node.get("name") or node.get("id") or "a node")
