"""A plan whose steps follow the data: how many passes, and by how much its trunk may grow.

Owns putting a step budget into a plan. Doesn't know losses (`horizon`) or where data comes from.
"""

import math
from dataclasses import dataclass

from jupiterd.cycle.runs.recorded_settings import OF_TUNING
from jupiterd.cycle.runs.run_plan import batch_of_run, derive_run, total_steps
from jupiterd.cycle.runs.run_settings import FROM_DATA, RunSettings
from jupiterd.cycle.training.held_out_measures import (
    PLACES_COST,
    least_interval,
    sequences_to_score,
)
from jupiterd.cycle.training.plan import (
    MOST_WARMUP_STEPS,
    ModelShape,
    Overrides,
    Recipe,
    TrainPlan,
    derive,
)
from jupiterd.cycle.training.step_budget import (
    StepBudget,
    first_budget,
    former_tuning_budget,
    later_budget,
    tuning_budget,
)
from jupiterd.cycle.training.tuning import shortly_warmed, tuned
from jupiterd.cycle.training.tuning_batch import tuning_batch


@dataclass(frozen=True)
class PriorTraining:
    """What the weights that a round begins with were trained on."""

    tokens: int = 0
    """In the rounds before."""
    is_of_others: bool = False
    """They came in from outside: round 1 tunes them."""
    is_tuning: bool = False
    """They came in from outside, and every round tunes them by the recipe for that."""


def planned_rounds(
    shape: ModelShape, settings: RunSettings, overrides: Overrides, seed: int, sequences: int
) -> tuple[TrainPlan, TrainPlan]:
    """Return the plans of round 1 and of a later one, as they are foretold.

    sequences: of the data, as reckoned; 0: nobody knows, so the steps are the size's
    """
    is_tuning = settings.recipe == OF_TUNING
    recipe_of = trained_shape(shape, settings)
    plan = with_batch(derive(recipe_of, 1, overrides, seed), settings, sequences)
    later = with_batch(derive(recipe_of, 2, overrides, seed, goes_on=True), settings, sequences)
    most = settings.max_steps
    if sequences and settings.steps_from == FROM_DATA:
        trained = PriorTraining(is_tuning=is_tuning)
        plan = bounded(plan_of_round(plan, shape, sequences, trained), recipe_of.recipe, most)
        after = PriorTraining(
            plan.steps * plan.batch_sequences * shape.seq_len, is_tuning=is_tuning
        )
        later = plan_of_round(later, shape, sequences, after)
    plan, later = (bounded(each, recipe_of.recipe, most) for each in (plan, later))
    return (shortly_warmed(plan), shortly_warmed(later)) if is_tuning else (plan, later)


def trained_shape(shape: ModelShape, settings: RunSettings) -> ModelShape:
    """Return a cycle's model with the recipe that its rounds have; raises as `settings.adapter`.

    That is the size's own, or that for weights that were given, with an adapter or without.
    """
    if settings.recipe != OF_TUNING:
        return shape
    recipe = _tuned(shape, settings).recipe
    options = settings.adapted(recipe.options)
    return shape.model_copy(update={"recipe": recipe.model_copy(update={"options": options})})


def with_batch(plan: TrainPlan, settings: RunSettings, sequences: int) -> TrainPlan:
    """Return a round's plan with as many sequences a step as its data decides, where it does.

    About as many tokens lie between two of its checkpoints as before: the clock saves in between.

    sequences: of the round's data; 0: nobody knows
    """
    if not (settings.least_batch and sequences):
        return plan
    batch = tuning_batch(sequences, settings.least_batch, plan.batch_sequences)
    changed = {
        "batch_sequences": batch,
        "micro_batch_sequences": min(plan.micro_batch_sequences, batch),
        "checkpoint_every_steps": plan.checkpoint_every_steps * plan.batch_sequences // batch,
    }
    return plan.model_copy(update=changed)


def plan_of_round(
    plan: TrainPlan, shape: ModelShape, sequences: int, trained: PriorTraining
) -> TrainPlan:
    """Return a round's plan with as many steps as its data is worth.

    plan: with those of the size; sequences: of the round's data
    """
    size = plan.steps, plan.batch_sequences, sequences
    if trained.is_tuning:
        budget = tuning_budget(plan.batch_sequences, sequences)
        return shortly_warmed(fitted_plan(plan, tuned(shape).recipe, budget, sequences))
    if trained.is_of_others:
        budget = former_tuning_budget(*size)
    elif trained.tokens:
        passes = trained.tokens / max(1, sequences * shape.seq_len)
        budget = later_budget(*size, passes)
    else:
        budget = first_budget(*size)
    return fitted_plan(plan, shape.recipe, budget, sequences)


def first_plan_of_run(preset: ModelShape, settings: RunSettings, sequences: int = 0) -> TrainPlan:
    """Return a run's plan with the steps that were asked for; 0: as many as its data takes.

    sequences: of the data; 0: it isn't there yet, and the batch is the largest that it may be
    """
    is_tuning = settings.recipe == OF_TUNING
    recipe = _tuned(preset, settings).recipe if is_tuning else preset.recipe
    batch = batch_of_run(settings, sequences) if sequences else settings.batch_sequences
    plan = derive_run(recipe, preset.seq_len, settings, settings.max_steps or 0, batch)
    return shortly_warmed(plan) if is_tuning else plan


def plan_of_run(preset: ModelShape, settings: RunSettings, sequences: int) -> TrainPlan:
    """Return the plan of a run on so many sequences: with the steps that were asked for, or fitted.

    The size's own steps count by their tokens: a run's batch and sequences are other ones.
    """
    if settings.recipe == OF_TUNING:
        return shortly_warmed(_plan_of_run(_tuned(preset, settings), settings, sequences))
    return _plan_of_run(preset, settings, sequences)


def _tuned(preset: ModelShape, settings: RunSettings) -> ModelShape:
    return tuned(preset, has_adapter=bool(settings.lora))


def _plan_of_run(preset: ModelShape, settings: RunSettings, sequences: int) -> TrainPlan:
    recipe, seq_len, batch = preset.recipe, preset.seq_len, batch_of_run(settings, sequences)
    if settings.steps_from != FROM_DATA:
        return derive_run(recipe, seq_len, settings, total_steps(settings, sequences), batch)
    tokens = recipe.first_steps * recipe.batch_sequences * seq_len
    steps = math.ceil(tokens / (batch * settings.seq_len))
    is_tuning = settings.recipe == OF_TUNING
    budget = tuning_budget(batch, sequences) if is_tuning else first_budget(steps, batch, sequences)
    plan = derive_run(recipe, seq_len, settings, steps, batch)
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
    scored = sequences_to_score(sequences)
    interval = least_interval(plan.batch_sequences, scored, PLACES_COST)
    passes = math.ceil(interval / budget.steps_per_pass)
    return max(1, round(max(1, passes) * budget.steps_per_pass))
