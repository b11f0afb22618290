"""A plan whose steps follow the data: how many passes, and by how much its trunk may grow.

Owns putting a step budget into a plan. Doesn't know losses (`horizon`) or where data comes from.
"""

import math
from dataclasses import dataclass

from jupiterd.cycle.plan import MOST_WARMUP_STEPS, ModelShape, Recipe, TrainPlan
from jupiterd.cycle.run_plan import derive_run, total_steps
from jupiterd.cycle.run_settings import FROM_DATA, RunSettings
from jupiterd.cycle.training.held_out_measures import (
    PLACES_COST,
    least_interval,
    sequences_to_score,
)
from jupiterd.cycle.training.step_budget import (
    StepBudget,
    first_budget,
    later_budget,
    tuning_budget,
)


@dataclass(frozen=True)
class Trained:
    """What the weights that a round begins with were trained on."""

    tokens: int = 0
    """In the rounds before."""
    is_of_others: bool = False
    """They came in from outside: round 1 tunes them."""


def plan_of_round(
    plan: TrainPlan, shape: ModelShape, sequences: int, trained: Trained
) -> TrainPlan:
    """Return a round's plan with as many steps as its data is worth.

    plan: with those of the size; sequences: of the round's data
    """
    size = plan.steps, plan.batch_sequences, sequences
    if trained.is_of_others:
        budget = tuning_budget(*size)
    elif trained.tokens:
        passes = trained.tokens / max(1, sequences * shape.seq_len)
        budget = later_budget(*size, passes)
    else:
        budget = first_budget(*size)
    return fitted_plan(plan, shape.recipe, budget, sequences)


def plan_of_run(preset: ModelShape, settings: RunSettings, sequences: int) -> TrainPlan:
    """Return the plan of a run on so many sequences: with the steps that were asked for, or fitted.

    The size's own steps count by their tokens: a run's batch and sequences are other ones.
    """
    recipe, seq_len = preset.recipe, preset.seq_len
    if settings.steps_from != FROM_DATA:
        return derive_run(recipe, seq_len, settings, total_steps(settings, sequences))
    tokens = recipe.first_steps * recipe.batch_sequences * seq_len
    steps = math.ceil(tokens / (settings.batch_sequences * settings.seq_len))
    budget = first_budget(steps, settings.batch_sequences, sequences)
    plan = derive_run(recipe, seq_len, settings, steps)
    return fitted_plan(plan, recipe, budget, sequences)


def fitted_plan(plan: TrainPlan, recipe: Recipe, budget: StepBudget, sequences: int) -> TrainPlan:
    """Return the plan with as many steps as its data is worth.

    plan: of the size's own steps; sequences: of the data
    """
    warmup = min(MOST_WARMUP_STEPS, max(1, round(budget.least * recipe.warmup_fraction)))
    changed = {
        "steps": budget.most,
        "decay_steps": round(budget.most * recipe.decay_fraction),
        "warmup_steps": warmup if plan.warmup_steps else 0,
    }
    if budget.most > budget.least:
        changed["least_steps"] = budget.least
        changed["extends_by_steps"] = _steps_of_passes(plan, budget, sequences)
    return plan.model_copy(update=changed)


def bounded(plan: TrainPlan, recipe: Recipe, max_steps: int | None) -> TrainPlan:
    """Return the plan with no more steps than that, at whose end the rate has fallen to nothing.

    max_steps: None: there is no bound
    """
    if max_steps is None or plan.steps <= max_steps:
        return plan
    if plan.extends_by_steps and max_steps <= plan.least_steps:
        plan = _without_growth(plan, recipe)
    changed = {
        "steps": max_steps,
        "decay_steps": round(max_steps * recipe.decay_fraction),
        "warmup_steps": min(plan.warmup_steps, max(1, round(max_steps * recipe.warmup_fraction))),
    }
    return plan.model_copy(update=changed)


def _without_growth(plan: TrainPlan, recipe: Recipe) -> TrainPlan:
    """Return the plan with the steps that it takes in any case."""
    steps = plan.least_steps
    changed = {
        "steps": steps,
        "decay_steps": round(steps * recipe.decay_fraction),
        "least_steps": 0,
        "extends_by_steps": 0,
    }
    return plan.model_copy(update=changed)


def _steps_of_passes(plan: TrainPlan, budget: StepBudget, sequences: int) -> int:
    """Return the steps of a pass, or of as many as make it worth while to measure after them."""
    scored = sequences_to_score(plan.batch_sequences, sequences)
    interval = least_interval(plan.batch_sequences, scored, PLACES_COST)
    passes = math.ceil(interval / budget.steps_per_pass)
    return max(1, round(max(1, passes) * budget.steps_per_pass))
