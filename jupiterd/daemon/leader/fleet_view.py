"""What a plan is made from: who could work, how they are linked, and what earlier work tells.

Owns nothing. Doesn't know what is planned (`daemon.planning`).
"""

from dataclasses import dataclass
from pathlib import Path

from jupiterd.cluster.ledger.state import State
from jupiterd.daemon.leader.connectivity import Connectivity
from jupiterd.daemon.leader.machines import Machines
from jupiterd.daemon.leader.placement import Placement
from jupiterd.daemon.leader.term import Term


@dataclass(frozen=True)
class FleetView:
    """One leader's view."""

    term: Term
    placement: Placement
    connectivity: Connectivity
    micro_batch_file: Path | None = None
    """Where ranks of this node keep the micro batches that they have found."""

    @property
    def machines(self) -> Machines:
        """What the members have."""
        return self.placement.machines

    @property
    def state(self) -> State:
        """What the ledger says by now."""
        return self.term.state
