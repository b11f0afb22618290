"""Who people want a training to run on.

Owns which machines that are. Doesn't know what they do (`launch`).
"""

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from jupiterd.cluster.engines import AUTO
from jupiterd.cluster.hardware import Hardware
from jupiterd.cluster.layouts import ONE_GANG, Kind
from jupiterd.daemon.launch import trainers
from jupiterd.ids import NodeId

if TYPE_CHECKING:
    from jupiterd.daemon.leading import Leading

OFF, ON, AUTO_ISLANDS = "off", "on", "auto"


@dataclass(frozen=True)
class Asked:
    """Who is to train, as people said."""

    engine: str = AUTO
    nodes: tuple[NodeId, ...] = ()
    """Empty: anybody."""
    most: int = 0
    """Machines; 0: any number."""
    islands: str = OFF
    """`on`, `auto` or `off`."""

    @property
    def choosable(self) -> frozenset[Kind]:
        """Return how machines may train together."""
        return ONE_GANG if self.islands == OFF else frozenset(Kind)

    def machines(self, leading: "Leading") -> dict[NodeId, Hardware]:
        """Return those that are here."""
        found = trainers(leading, self.nodes)
        return dict(islice(found.items(), self.most or None))


ANYBODY = Asked()
