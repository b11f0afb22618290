"""What is predicted of a training when it begins, for the facts that keep it.

Owns when: once for the same machines in a round, as soon as anybody can know. What they have done
since is measured, and a prediction of that would only repeat it. Doesn't know how it is predicted
(`layouts`), or what it is compared with (`cluster.predicted_throughput`).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from jupiterd.cluster.facts.attempt_facts import AttemptOpened
from jupiterd.cluster.facts.facts import OuterStepTaken, TrainingStarted
from jupiterd.cluster.planning.layouts import Island
from jupiterd.daemon.leader.fleet_view import FleetView
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.planning.gang_plan import GangPlan
from jupiterd.daemon.planning.layout_inputs import predicted_of_islands, predicted_tokens_per_s
from jupiterd.daemon.planning.requested_machines import Exchanges
from jupiterd.daemon.planning.trained_round import TrainedRound
from jupiterd.daemon.planning.training_spec import TrainingSpec


def with_prediction(
    term: Term, fleet_view: FleetView, trained_round: TrainedRound, gang_plan: GangPlan
) -> GangPlan:
    """Return a launch with what is predicted of its gang, or was when that first began."""
    opened = term.cycle(trained_round.cycle).attempts_opened.values()
    before = [
        each for each in opened if each.round == trained_round.round and _is_of(each, gang_plan)
    ]
    rate = next((each.predicted_tokens_per_s for each in before), 0.0)
    if not rate:
        found = predicted_tokens_per_s(
            fleet_view, gang_plan.choice, trained_round.shape, trained_round.plan
        )
        rate = _kept(found)
    return replace(gang_plan, predicted_tokens_per_s=rate)


def step_with_prediction(
    term: Term,
    fleet_view: FleetView,
    training: TrainingSpec,
    taken: OuterStepTaken,
    islands: Sequence[TrainingStarted],
) -> OuterStepTaken:
    """Return an outer step with what those are predicted who have a part in its round.

    Args:
        term: the term.
        fleet_view: what is known of the machines.
        training: the run's, or the cycle's round.
        taken: the step, before it is recorded.
        islands: at least those that have a part.
    """
    before = reversed([*term.cycle(taken.cycle).outer_branch(taken.round).values()])
    same = (step for step in before if step.batches.keys() == taken.batches.keys())
    rate = next((step.predicted_tokens_per_s for step in same if step.predicted_tokens_per_s), 0.0)
    parts = [Island.of(each.engine, each.nodes) for each in islands if each.cycle in taken.batches]
    if parts and not rate:
        shape, plan = training.shape, training.plan
        exchanges = Exchanges(training.settings.pseudo_gradient_format, taken.steps)
        rate = _kept(predicted_of_islands(fleet_view, parts, shape, plan, exchanges))
    return replace(taken, predicted_tokens_per_s=rate)


def _is_of(opened: AttemptOpened, gang_plan: GangPlan) -> bool:
    """Say whether an attempt had the same gang, in whatever order, on the same engine."""
    engine, _, _ = opened.engine.partition("/")
    is_same = (engine, Counter(opened.gang)) == (gang_plan.choice.engine, Counter(gang_plan.gang))
    return is_same and opened.predicted_tokens_per_s > 0


def _kept(rate: float | None) -> float:
    return round(rate or 0.0, 1)
