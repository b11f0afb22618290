"""The parts of one term of leading, side by side.

Owns nothing: whoever begins something picks from it what that needs, and hands on no more.
"""

from dataclasses import dataclass, field

from jupiterd.daemon.leader.admissions import Admissions
from jupiterd.daemon.leader.artifact_reach import ArtifactReach
from jupiterd.daemon.leader.connectivity import Connectivity
from jupiterd.daemon.leader.fleet_view import FleetView
from jupiterd.daemon.leader.machines import Machines
from jupiterd.daemon.leader.placement import Placement
from jupiterd.daemon.leader.progress_board import ProgressBoard
from jupiterd.daemon.leader.pseudo_gradients import PseudoGradients
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.leader.work_calls import WorkCalls


@dataclass(frozen=True)
class TermServices:
    """What a term of leading works with."""

    term: Term
    board: ProgressBoard
    machines: Machines
    placement: Placement
    reach: ArtifactReach
    calls: WorkCalls
    connectivity: Connectivity
    admissions: Admissions
    pseudo_gradients: PseudoGradients = field(default_factory=PseudoGradients)
    """What the gangs of islands have told."""

    @property
    def fleet_view(self) -> FleetView:
        """What a plan is made from."""
        return FleetView(self.term, self.placement, self.connectivity)
