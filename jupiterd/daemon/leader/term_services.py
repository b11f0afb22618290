"""The parts of one term of leading, in three groups: for work, for training, and all of them.

Owns nothing: whoever begins something hands it the smallest group that it needs.
"""

from dataclasses import dataclass, field
from pathlib import Path

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


@dataclass(frozen=True, kw_only=True)
class WorkServices:
    """What an item of work is placed, run and recorded with."""

    term: Term
    board: ProgressBoard
    placement: Placement
    reach: ArtifactReach
    calls: WorkCalls

    @property
    def machines(self) -> Machines:
        """What the members have."""
        return self.placement.machines


@dataclass(frozen=True, kw_only=True)
class TrainingServices(WorkServices):
    """What a gang, or several islands, train with besides."""

    connectivity: Connectivity
    pseudo_gradients: PseudoGradients = field(default_factory=PseudoGradients)
    """What the gangs of islands have reported."""
    micro_batch_file: Path | None = None
    """Where ranks of this node keep the micro batches that they have found."""

    @property
    def fleet_view(self) -> FleetView:
        """What a plan is made from."""
        return FleetView(self.term, self.placement, self.connectivity, self.micro_batch_file)


@dataclass(frozen=True, kw_only=True)
class TermServices(TrainingServices):
    """All parts of a term, with those that let newcomers in."""

    admissions: Admissions
