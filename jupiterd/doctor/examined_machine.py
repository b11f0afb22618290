"""The machine that is examined: its daemon's settings and status, as every check gets them.

Owns the record, and what checks read out of a status document. Doesn't know any check, or whether a
daemon runs.
"""

import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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
    """Where jupiterd listens for other nodes, or would; 0: wherever the system likes."""
    local: bool = False
    """It uses the loopback interface only."""
    interfaces: tuple[str, ...] = ()
    """Those that it uses; empty: all."""
    status: Row | None = None
    """What the running daemon says; None where none answers."""
    free_disk_bytes: int = 0
    """What is to stay free on the disk of the state folder."""
    system: str = "Linux"
    """`Linux` or `Darwin`."""

    @property
    def members(self) -> list[Row]:
        """Return the nodes of the cluster, without those that wait to be let in."""
        rows = (self.status or {}).get("nodes", [])
        return [row for row in rows if row.get("state") != "pending"]

    @property
    def own(self) -> Row:
        """Return this node's row; an empty one where no daemon answers."""
        own = ((self.status or {}).get("node") or {}).get("id")
        return next((row for row in self.members if row.get("id") == own), {})

    @property
    def others(self) -> list[Row]:
        """Return the rows of the other nodes."""
        return [row for row in self.members if row is not self.own]

    def complains_of(self, code: str) -> bool:
        """Say whether this code is among the daemon's health warnings."""
        return any(line.get("code") == code for line in (self.status or {}).get("health", ()))

    def paths(self) -> Iterator[tuple[Row, Row]]:
        """Yield (node, path) for each known path to another node that is alive."""
        for node in self.others:
            if node.get("state") != "alive":
                continue
            for path in node.get("links") or ():
                yield node, path


def machine_of(settings: Settings, status: Row | None, port: int) -> ExaminedMachine:
    """Return this machine; status: the daemon's document, None where no daemon answers."""
    return ExaminedMachine(
        state_dir=settings.state_dir,
        port=port,
        local=settings.local,
        interfaces=settings.interface,
        status=status,
        free_disk_bytes=settings.free_disk_mib * MIB,
        system=platform.system(),
    )


def name_of(node: Row) -> str:
    """Return what people call a node."""
    return str(node.get("name") or node.get("id") or "a node")
