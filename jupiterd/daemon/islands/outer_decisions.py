"""What the leader decides by losses on held-out text, from one outer step to the next.

Owns what is read from the ledger and from pseudo-gradients for that, and what of it is recorded.
Doesn't know the rules (`cycle.islands.outer_horizon`), or how a round is gathered.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from jupiterd.cluster.facts.facts import OuterStepTaken
from jupiterd.cluster.text.held_out_words import held_out_readings
from jupiterd.cycle.islands.outer_horizon import MergedLoss, decided, is_scored, places
from jupiterd.cycle.islands.outer_orders import LAGS, OuterTraining
from jupiterd.cycle.islands.outer_round import Closing
from jupiterd.cycle.training.held_out_measures import sequences_to_score
from jupiterd.cycle.training.horizon import Horizon, expected_steps, schedule
from jupiterd.daemon.planning.training_spec import TrainingSpec
from jupiterd.protocol.training_values import PseudoGradient


def training_at(of: TrainingSpec, horizon: Horizon) -> OuterTraining:
    """Return what the next round depends on, as far as it is decided."""
    plan, settings = of.plan, of.settings
    return OuterTraining(
        schedule(plan, horizon),
        plan.batch_sequences,
        settings.outer,
        LAGS[settings.sync],
        places(plan, horizon),
        horizon.ended,
    )


def horizon_after(
    of: TrainingSpec,
    rounds: Sequence[OuterStepTaken],
    closing: Closing,
    pseudo_gradients: Mapping[str, PseudoGradient],
) -> Horizon:
    """Return what is decided when the oldest of the open rounds closes.

    closing, pseudo_gradients: whose pseudo-gradients don't count has other weights, or none
    """
    losses = [
        MergedLoss(pseudo_gradients[each].scored_step, pseudo_gradients[each].held_out)
        for each in closing.counted
        if pseudo_gradients[each].scored_step
    ]
    last = rounds[-1]
    return decided(of.plan, Horizon.of(last.horizon), losses, last.first_step + last.steps)


def with_decisions(
    of: TrainingSpec,
    taken: OuterStepTaken,
    horizon: Horizon,
    closed: OuterStepTaken,
    scored_before: int,
) -> OuterStepTaken:
    """Return an outer step with what is decided, and whether its weights are scored.

    Args:
        of: what is trained.
        taken: the step.
        horizon: what is decided by then.
        closed: the one that ordered the round which it merges.
        scored_before: the step of the weights that were to be scored last, reported or not.
    """
    merged = closed.first_step + closed.steps
    scored = sequences_to_score(of.sequences)
    smallest = min((taken.batches or closed.batches).values(), default=1)
    is_due = is_scored(of.plan, horizon, merged, scored_before, scored, smallest)
    return replace(taken, horizon=horizon.to_plain(), scored_step=merged if is_due else 0)


def shown_decisions(of: TrainingSpec, taken: OuterStepTaken) -> dict[str, object]:
    """Return what people see of it: the steps that are expected, and the losses."""
    horizon = Horizon.of(taken.horizon)
    risen = {"risen": 1.0} if horizon.has_risen or horizon.ended else {}
    return {
        "steps": expected_steps(of.plan, horizon, taken.first_step),
        "held_out": held_out_readings(taken.horizon) | risen,
    }
