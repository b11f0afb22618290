"""Commands by which a launch of somebody's program reaches other machines.

Owns their fields. Doesn't know what runs there. Pure.
"""

from dataclasses import dataclass
from typing import ClassVar

from jupiterd.protocol.commands.command import Command, PlainMap


@dataclass(frozen=True, kw_only=True)
class PrepareLaunch(Command):
    """Say where a program may run, and whether it can."""

    VERB: ClassVar[str] = "script.prepare"

    nodes: str
    """As people say it."""
    per_node: str = ""
    """Processes, of all machines or of each."""
    devices: tuple[str, ...] = ()
    engine: str
    program: str
    """Empty: each machine's own Python."""
    folder: str
    """Where it runs; empty: it travels."""
    script: str
    files: tuple[str, ...] = ()
    """That must be alike on all machines."""
    folder_map: tuple[str, ...] = ()
    environment: PlainMap | None = None
    """What of the shell's the ranks on this machine find."""


@dataclass(frozen=True, kw_only=True)
class ShipFolder(Command):
    """Have machines fetch files of a folder of the machine that is asked."""

    VERB: ClassVar[str] = "script.ship"

    folder: str
    files: tuple[str, ...]
    """Relative to it."""
    nodes: tuple[str, ...]
    run: str = ""
    """For which it is laid out there."""


@dataclass(frozen=True, kw_only=True)
class ReportRefusedConnections(Command):
    """Report connections that ranks which jupiterctl runs on this machine have refused."""

    VERB: ClassVar[str] = "script.knocked"

    count: int
    hosts: tuple[str, ...]
