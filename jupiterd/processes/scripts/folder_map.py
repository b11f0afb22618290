"""Where a folder of this machine lies on others: `/home/a=/Users/b`, or `attic:/home/a=/data/a`.

Owns the form and the replacing. Pure. The longest beginning that fits counts, and one that names
the machine before one that names none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from jupiterd.cluster.values.node_names import find_node
from jupiterd.errors import UsageError
from jupiterd.ids import NodeId

_HINT = "such as --workdir-map /home/a=/Users/b, or for one machine attic:/home/a=/Users/b"


@dataclass(frozen=True)
class Replacement:
    """One entry."""

    here: str
    there: str
    machine: str = ""
    """Empty for all but the one where the command is typed."""


@dataclass(frozen=True)
class MachinesFolders:
    """The entries for one machine, those that count first in front."""

    entries: tuple[Replacement, ...] = ()

    def mapped(self, path: str) -> str:
        """Return where a path lies there; as it is where no entry fits, or it isn't a whole one."""
        if not path.startswith("/"):
            return path
        for entry in self.entries:
            if PurePosixPath(path).is_relative_to(entry.here):
                rest = PurePosixPath(path).relative_to(entry.here)
                return str(PurePosixPath(entry.there) / rest)
        return path


@dataclass(frozen=True)
class FolderMap:
    """All entries, as they were typed."""

    entries: tuple[Replacement, ...] = ()

    @classmethod
    def parse(cls, texts: Sequence[str]) -> "FolderMap":
        """Read what somebody has typed, once or several times; raises UsageError."""
        return cls(tuple(map(_entry, texts)))

    def of(
        self, nodes: Sequence[NodeId], names: Mapping[NodeId, str], own: NodeId
    ) -> dict[NodeId, MachinesFolders]:
        """Return the entries for each of these machines; raises NotFoundError or UsageError."""
        found: dict[NodeId, MachinesFolders] = {}
        for node in nodes:
            fitting = [
                entry
                for entry in self.entries
                if (find_node(names, entry.machine) == node if entry.machine else node != own)
            ]
            fitting.sort(key=lambda entry: (not entry.machine, -len(entry.here)))
            found[node] = MachinesFolders(tuple(fitting))
        return found


def _entry(text: str) -> Replacement:
    left, sign, there = text.partition("=")
    machine, colon, here = left.partition(":")
    if not colon:
        machine, here = "", left
    if not (sign and here.startswith("/") and there.startswith("/")):
        raise UsageError(f"--workdir-map {text} is not FOLDER=FOLDER with whole paths", _HINT)
    return Replacement(here, there, machine.strip())
