"""Two machines with one key: a copied disk, or a copied machine, that runs beside the original.

Owns who is a copy of whom, how copies come about and go, and what must hold as long as they are
there: once they can meet both know of each other, and whoever knows it leads nobody.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from jupiterd.cluster.ledger.ledger import Entry
from jupiterd.errors import JupiterError
from jupiterd.ids import NodeId
from tests.simulation.invariants.violation import Violation
from tests.simulation.node.disk import Content, Disk
from tests.simulation.node.replica import parse_once
from tests.simulation.node.signing import sign

if TYPE_CHECKING:
    from tests.simulation.node.machine import Machine
    from tests.simulation.node.process import Process
    from tests.simulation.world import World

MET_S = 2.5
"""Two that reach each other have greeted by then: they do so every two seconds."""


class Clones:
    """Watches every key that two machines have."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.places: dict[NodeId, list[NodeId]] = {}
        """Where each key that was copied is used: the machines' places."""
        self._together_since: dict[tuple[NodeId, NodeId], float] = {}
        self.copied_writers: set[str] = set()
        """Names that two processes may write under."""

    def where(self, node: NodeId) -> NodeId:
        """Return the machine that a message to a node comes to; either one, where there are two."""
        places = self.places.get(node)
        if places is None:
            return node
        running = [place for place in places if self._world.machines[place].process is not None]
        return self._world.rng.choice(running or places)

    def has_two(self, node: NodeId) -> bool:
        """Say whether two machines have a node's key."""
        return len(self.places.get(node, ())) > 1

    def pairs(self) -> "list[list[Machine]]":
        """Return the machines of each key that two have."""
        machines = self._world.machines
        doubled = (places for places in self.places.values() if len(places) > 1)
        return [[machines[place] for place in places] for places in doubled]

    # --- how they come and go ---

    def copy_disk(self, machine: "Machine") -> None:
        """Start a machine beside another one, with what lies or lay on its disk."""
        if not self.has_two(machine.node):
            disk = machine.disk
            self._add(machine, self._world.rng.choice([disk.content, *disk.backups])).start()

    def copy_running(self, machine: "Machine") -> None:
        """Copy a machine as it runs: its process goes on in both, under one writer's name."""
        if machine.process is None or self.has_two(machine.node):
            return
        replica, copy = machine.process.replica, self._add(machine, machine.disk.content)
        copy.start()
        if copy.process is not None:
            copy.process.replica.writer = replica.writer
            self.copied_writers.add(str(replica.writer))

    def _add(self, machine: "Machine", content: Content) -> "Machine":
        world, node = self._world, machine.node
        copy = machine.beside(NodeId(f"{world.fresh_name(8)} copy of {node[:2]}"), Disk(content))
        world.machines[copy.place] = copy
        self.places.setdefault(node, [machine.place]).append(copy.place)
        world.witness.copied(copy)
        world.met["two machines have one key"] += 1
        world.tell(f"{copy.place} is copied")
        return copy

    def part(self, machine: "Machine") -> None:
        """Let a machine go for good: its owner deletes the key there."""
        machine.go_out()
        machine.is_buried = True
        self.places[machine.node].remove(machine.place)
        del self._world.machines[machine.place]
        self._world.disturb(f"{machine.place[:8]} gives up its key")

    # --- what must hold ---

    def check(self) -> None:
        """After each event, once any key was copied."""
        for machine in self._world.checks.acting.values():
            if machine.process is not None and machine.process.clones.is_seen:
                raise Violation(f"{machine.place[:8]} leads, and its key is used twice")
        for pair in self.pairs():
            for one, other in combinations(pair, 2):
                self._check_pair(one, other)

    def _check_pair(self, one: "Machine", other: "Machine") -> None:
        world, pair = self._world, (one.place, other.place)
        if not (one.is_awake and other.is_awake and world.network.is_open(*pair)):
            self._together_since.pop(pair, None)
            return
        together_since = self._together_since.setdefault(pair, world.now)
        calm_s = min(world.now - together_since, world.network.fair_s(), _up_s(world, one, other))
        if calm_s > MET_S / min(one.rate, other.rate):
            for machine in (one, other):
                assert machine.process is not None
                if not machine.process.clones.is_seen:
                    raise Violation(f"{machine.place[:8]} doesn't know that its key is used twice")
            world.met["two machines with one key know of each other"] += 1

    def offered(self, process: "Process", raws: Sequence[bytes]) -> None:
        """A process took in entries: one in its own name that it hasn't written tells it all."""
        own = str(process.replica.writer)
        if own not in self.copied_writers:
            return
        ours = [entry for entry in _parsed(raws) if str(entry.writer) == own]
        written = {entry.hash for entry in process.replica.ledger.entries()}
        for entry in ours:
            is_signed = entry.signature == sign(process.node, entry.body)
            is_kept = process.replica.ledger.has_forgotten({}) or entry.hash in written
            if is_signed and not is_kept:
                self._world.met["a clone is known by an entry"] += 1
                if not process.clones.is_seen:
                    raise Violation(f"{process.place[:8]} met an entry of its clone, and goes on")


def _up_s(world: "World", *machines: "Machine") -> float:
    return min(world.now - machine.up_since for machine in machines)


def _parsed(raws: Sequence[bytes]) -> list[Entry]:
    found: list[Entry] = []
    for raw in raws:
        try:
            found.append(parse_once(raw))
        except JupiterError:
            continue
    return found
