"""Maps a folder of this machine to its path on others: `/home/a=/Users/b`, `attic:/home/a=/data/a`.

Owns the syntax and the replacement. Pure. An entry that names the machine precedes one that names
none; among those, the longest matching prefix wins.
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
    """One entry: the folder `here` lies at `there` on the other machine."""

    here: str
    there: str
    machine: str = ""
    """The machine's name; empty: every machine except the one where the user typed the command."""


@dataclass(frozen=True)
class MachinesFolders:
    """The entries for one machine, in order of precedence."""

    entries: tuple[Replacement, ...] = ()

    def mapped(self, path: str) -> str:
        """Return the path there; unchanged if no entry matches or the path isn't absolute."""
        if not path.startswith("/"):
            return path
        for entry in self.entries:
            if PurePosixPath(path).is_relative_to(entry.here):
                rest = PurePosixPath(path).relative_to(entry.here)
                return str(PurePosixPath(entry.there) / rest)
        return path


@dataclass(frozen=True)
class FolderMap:
    """All entries, as the user typed them."""

    entries: tuple[Replacement, ...] = ()

    @classmethod
    def parse(cls, texts: Sequence[str]) -> "FolderMap":
        """Parse the option's texts; raises UsageError."""
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
