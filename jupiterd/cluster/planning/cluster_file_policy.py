"""What somebody has written down of their machines, beside what these say of themselves.

Owns the record, which machine each entry of it means, and what it asks for of runs. Pure. Doesn't
know the file's form (`daemon.runtime.cluster_file`), or what a machine is like
(`cluster_file_conflicts`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from jupiterd.cluster.planning.engines import AUTO
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.cluster.values.interface_kind import InterfaceKind
from jupiterd.ids import NodeId

ISLANDS: Final = ("islands", "mpi")
"""The second is an alias: people who come from MPI look for that word."""

Meanings = Mapping[str, frozenset[str]]
"""What the hosts in a file are known to mean as addresses, both as HOST:PORT."""


@dataclass(frozen=True)
class MachineEntry:
    """What is written of one machine; what isn't stays empty."""

    address: str = ""
    """HOST:PORT, where it is looked for."""
    name: str = ""
    device_type: str = ""
    memory_gb: float | None = None
    chip: str = ""
    role: str = ""
    connection_type: str = ""
    ssh_user: str = ""
    lines: Mapping[str, int] = field(default_factory=dict[str, int])
    """Where each key stands in the file."""


@dataclass(frozen=True)
class ClusterFile:
    """A cluster file; without one all of it is empty."""

    file: str = ""
    backend: str = AUTO
    sync_every: int | None = None
    """The inner steps of an island between two exchanges."""
    entries: tuple[MachineEntry, ...] = ()
    lines: Mapping[str, int] = field(default_factory=dict[str, int])

    def place(self, key: str, entry: MachineEntry | None = None) -> str:
        """Return FILE:LINE of a key, of an entry or of the whole."""
        return f"{self.file}:{(self.lines if entry is None else entry.lines).get(key, 1)}"

    def engine(self) -> str:
        """Return what to train on where nobody says so."""
        return AUTO if self.backend in ISLANDS else self.backend

    def settings(self) -> dict[str, str | int]:
        """Return what else of a run the file decides where nobody says so."""
        islands = {"islands": "preferred"} if self.backend in ISLANDS else {}
        every = {} if self.sync_every is None else {"sync_every": self.sync_every}
        return {**islands, **every}

    def notes(self) -> Iterator[str]:
        """Yield what has no effect, and why."""
        named = [entry for entry in self.entries if entry.ssh_user]
        if named:
            where = self.place("ssh_user", named[0])
            yield f"{where}: ssh_user isn't needed: the daemons reach each other without SSH"


@dataclass(frozen=True)
class KnownMachine:
    """One member as this node knows it."""

    node: NodeId
    name: str
    addresses: frozenset[str]
    """Where it was found to answer, as HOST:PORT."""
    hardware: Hardware | None = None
    kinds: frozenset[InterfaceKind] = frozenset()
    """Of its own ends of the links in use; empty where that can't be told."""


def entries_by_node(
    written: ClusterFile, machines: Sequence[KnownMachine], meanings: Meanings
) -> dict[NodeId, MachineEntry]:
    """Return which entry is about which machine; of two about one the first."""
    found: dict[NodeId, MachineEntry] = {}
    for entry in written.entries:
        node = _meant(entry, machines, meanings)
        if node is not None:
            found.setdefault(node, entry)
    return found


def _meant(
    entry: MachineEntry, machines: Sequence[KnownMachine], meanings: Meanings
) -> NodeId | None:
    """Return the only machine of that name; where names don't tell, the only one that is there."""
    named = [machine for machine in machines if entry.name and machine.name == entry.name]
    addresses = {entry.address} | meanings.get(entry.address, frozenset())
    there = [machine for machine in named or machines if machine.addresses & addresses]
    chosen = named if len(named) == 1 else there
    return chosen[0].node if len(chosen) == 1 else None
