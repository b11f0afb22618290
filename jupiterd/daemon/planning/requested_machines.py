"""Who people want a training to run on, and how.

Owns which machines that are. Doesn't know what they do (`launch`).
"""

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Self

from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.planning.engines import AUTO
from jupiterd.cluster.planning.layouts import ONE_GANG, Island, LayoutKind
from jupiterd.cluster.training.memory_limits import MemoryLimits
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.cluster.values.node_names import find_node
from jupiterd.daemon.leader.machines import Machines
from jupiterd.daemon.leader.placement import Placement
from jupiterd.daemon.planning.gang_plan import trainers
from jupiterd.errors import UsageError
from jupiterd.ids import NodeId

if TYPE_CHECKING:
    from jupiterd.cycle.runs.run_settings import RunSettings

EVERYBODY = "all"
OFF, ON, AUTO_ISLANDS = "off", "on", "auto"
PREFERRED = "preferred"
"""As `on`, but one gang begins where one machine alone is here: a cluster file says so."""


@dataclass(frozen=True)
class Exchanges:
    """How people want islands to exchange what they have learned."""

    pseudo_gradient_format: str = "int8"
    every_steps: int = 0
    """0: as the planner thinks best."""

    @classmethod
    def of(cls, settings: "RunSettings") -> Self:
        """Return what a run's settings say."""
        return cls(settings.pseudo_gradient_format, settings.sync_every)


AS_PLANNED = Exchanges()


@dataclass(frozen=True)
class RequestedMachines:
    """Who is to train, as people said."""

    engine: str = AUTO
    nodes: tuple[NodeId, ...] = ()
    """Empty: anybody."""
    most: int = 0
    """Machines; 0: any number."""
    islands: str = OFF
    """`on`, `auto` or `off`."""
    exchanges: Exchanges = AS_PLANNED
    """How islands would exchange."""
    needs_bitsandbytes: bool = False
    """Only machines that have it, as torch is to quantize."""
    chosen: tuple[Island, ...] = ()
    """The islands that were made of that; empty: one gang trains, or it isn't decided yet."""
    shard: str = ""
    """`off`, `auto` or the stage in which the model is cut over ranks; empty: as `auto`."""
    limits: MemoryLimits = field(default_factory=dict[NodeId, int])
    """What it may use of members' memory."""

    @property
    def choosable(self) -> frozenset[LayoutKind]:
        """Return how machines may train together."""
        return ONE_GANG if self.islands == OFF else frozenset(LayoutKind)

    def machines(self, placement: Placement) -> dict[NodeId, Hardware]:
        """Return those that are here."""
        known = trainers(placement, self.nodes)
        needed = self.needs_bitsandbytes
        found = {n: each for n, each in known.items() if each.has_bitsandbytes or not needed}
        return dict(islice(found.items(), self.most or None))


ANYBODY = RequestedMachines()


def named_nodes(state: State, machines: Machines, wanted: str) -> tuple[tuple[NodeId, ...], int]:
    """Return the nodes that are named, none where anybody may, and the most ranks (0: any).

    Raises:
        NotFoundError: a node isn't known.
        UsageError: it names nobody, or more than there are.
    """
    if wanted == EVERYBODY:
        return (), 0
    if wanted.isdecimal():
        if not 1 <= int(wanted) <= len(state.members):
            many = len(state.members)
            raise UsageError(f"--nodes {wanted}: the cluster has {many}", "jupiterctl node list")
        return (), int(wanted)
    names = machines.names()
    found = [find_node(names, name.strip()) for name in wanted.split(",") if name.strip()]
    if not found:
        raise UsageError("--nodes names nobody", "--nodes all, a number, or NAME,NAME")
    return tuple(dict.fromkeys(found)), 0
