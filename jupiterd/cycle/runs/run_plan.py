"""How a training run without the cycle is trained: its recipe, and what people said otherwise.

Owns the count of steps and the batch. Doesn't know data sets or ranks beyond their numbers.
"""

import math
from typing import Any

from jupiterd.cycle.runs.run_settings import AUTO, RunSettings
from jupiterd.cycle.training.memory import Fit
from jupiterd.cycle.training.plan import ModelShape, Recipe, TrainPlan
from jupiterd.cycle.training.tuning_batch import tuning_batch
from jupiterd.errors import EmptySourceError

LEAST_CHECKPOINT_STEPS = 10
MAX_WARMUP_STEPS = 1_000


def sequences_in(tokens: int, seq_len: int) -> int:
    """Return how many sequences a stream of tokens is cut into; each needs one token more.

    Raises:
        EmptySourceError: not even one.
    """
    sequences = max(0, tokens - 1) // seq_len
    if not sequences:
        raise EmptySourceError(
            f"the data set has {tokens:,} tokens, and one sequence takes {seq_len + 1:,}",
            "give it more text, or a smaller --seq-len",
        )
    return sequences


def batch_of_run(settings: RunSettings, sequences: int) -> int:
    """Return the sequences of a step: as many as was said, or as the data decides."""
    if not settings.least_batch:
        return settings.batch_sequences
    least = settings.shared_by(settings.ranks).least_batch
    return tuning_batch(sequences, least, settings.batch_sequences)


def total_steps(settings: RunSettings, sequences: int) -> int:
    """Return the steps that were asked for, by number or by passes; whichever ends first."""
    if settings.max_steps is not None and settings.epochs is None:
        return settings.max_steps
    batch = batch_of_run(settings, sequences)
    passes = math.ceil((settings.epochs or 1) * sequences / batch)
    return passes if settings.max_steps is None else min(passes, settings.max_steps)


def fitted(preset: ModelShape, seq_len: int, vocab_size: int) -> ModelShape:
    """Return a preset with room for the data's vocabulary, and for sequences as long as asked."""
    wanted = {"seq_len": seq_len, "vocab_size": max(preset.vocab_size, vocab_size)}
    return ModelShape.from_plain(preset.to_plain() | wanted)


def derive_run(
    recipe: Recipe, recipe_seq_len: int, settings: RunSettings, steps: int, batch: int = 0
) -> TrainPlan:
    """Return the plan of a run with a size's recipe, whose sequences have `recipe_seq_len`.

    batch: sequences of a step; 0: as many as is said, or the most where the data decides
    """
    peak = settings.learning_rate
    decay = settings.weight_decay
    batch = batch or settings.batch_sequences
    return TrainPlan(
        steps=steps,
        batch_sequences=batch,
        micro_batch_sequences=_micro_batch(settings),
        learning_rate=recipe.learning_rate if peak is None else peak,
        warmup_steps=min(MAX_WARMUP_STEPS, max(1, round(steps * recipe.warmup_fraction))),
        decay_steps=round(steps * recipe.decay_fraction),
        weight_decay=recipe.weight_decay if decay is None else decay,
        clip_norm=recipe.clip_norm,
        checkpoint_every_steps=_checkpoint_every_steps(
            recipe, recipe_seq_len, batch * settings.seq_len, may_be_rare=settings.least_batch > 0
        ),
        seed=settings.seed,
        options=settings.options(recipe.options),
    )


def fitting_settings(settings: RunSettings, fit: Fit, *, is_cut: bool = False) -> RunSettings:
    """Return the settings with what had to be changed so that the model fits its devices.

    is_cut: the ranks hold it together, and later ones may
    """
    planned, options = _micro_batch(settings), fit.plan.options
    changed: dict[str, Any] = {}
    if fit.plan.micro_batch_sequences < min(planned, settings.batch_sequences):
        changed["micro_batch"] = fit.plan.micro_batch_sequences
    if is_cut and not settings.shard:
        changed["shard"] = AUTO
    if fit.gradient_checkpointing:
        changed["gradient_checkpointing"] = "on"
    if fit.changes:
        changed |= {"optimizer": options.optimizer, "weights": options.weights}
        changed["precision"] = options.precision
    return settings.model_copy(update=changed)


def _micro_batch(settings: RunSettings) -> int:
    """Return what a device holds at a time: what fits, what people say, or the batch size."""
    return settings.micro_batch or settings.fixed_micro_batch or settings.batch_size


def _checkpoint_every_steps(
    recipe: Recipe, recipe_seq_len: int, step_tokens: int, *, may_be_rare: bool
) -> int:
    """Let about as many tokens lie between two checkpoints as the recipe has it.

    may_be_rare: it may be more steps than the recipe's; runs of older builds have no more
    """
    wanted = recipe.checkpoint_every_steps * recipe.batch_sequences * recipe_seq_len
    steps = wanted // step_tokens
    least = min(LEAST_CHECKPOINT_STEPS, recipe.checkpoint_every_steps)
    return max(least, steps if may_be_rare else min(recipe.checkpoint_every_steps, steps))
