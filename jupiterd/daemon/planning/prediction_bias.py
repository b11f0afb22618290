"""By how much the planner was wrong with layouts that have run here.

Owns the pairs of what it would have predicted and what was measured, and what follows from them.
Doesn't know how either is found (`cluster.layouts`, `throughput_history`). Pairs aren't kept: both
are worked out anew of what the ledger tells, so whoever leads comes to the same.
"""

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.planning.layouts import Fleet, LayoutKind, PlannedTraining, predict
from jupiterd.cluster.planning.prediction_error import correction
from jupiterd.daemon.planning.throughput_history import MeasuredLayout, measured_layouts

if TYPE_CHECKING:
    from jupiterd.cycle.training.plan import ModelShape

NEWEST = 20
"""So many are looked at."""


def corrections(
    state: State, shape: "ModelShape", fleet: Fleet, job: PlannedTraining
) -> dict[LayoutKind, float]:
    """Return what layouts of each kind are as fast as, compared with what is predicted of them.

    Machines that aren't known any more say nothing; a lone one was measured, not predicted.
    """
    pairs: dict[LayoutKind, list[tuple[float, float]]] = {}
    for measured in islice(measured_layouts(state, shape), NEWEST):
        if predicted := _predicted(fleet, job, measured):
            kind = measured.layout.kind
            pairs.setdefault(kind, []).insert(0, (predicted, measured.did.tokens_per_s))
    return {kind: correction(found) for kind, found in pairs.items()}


def _predicted(fleet: Fleet, job: PlannedTraining, measured: MeasuredLayout) -> float | None:
    """Return what is predicted of it now, without corrections; None where nobody can know."""
    layout, did = measured.layout, measured.did
    known = fleet.machines.keys() & {*layout.nodes}
    if len(known) < len(layout.nodes) or not did.steps:
        return None
    then = replace(
        job,
        tokens_per_step=max(1, did.tokens // did.steps),
        difference_bytes=measured.difference_bytes,
    )
    return predict(fleet, then, layout, every_steps=measured.every_steps).tokens_per_s
