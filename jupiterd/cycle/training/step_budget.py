"""How many steps a training takes: as many as its data is worth, and no more than its size asks.

Owns that arithmetic. Doesn't know plans, losses or where the data comes from: it is given counts.

Passes over the same text are nearly as good as new text up to four, and worth nothing beyond
sixteen (Muennighoff et al. 2023, "Scaling Data-Constrained Language Models", arXiv 2305.16264).
"""

import math
from dataclasses import dataclass

GOOD_PASSES = 4
WORTHLESS_PASSES = 16

LATER_PASSES = 2
"""Of a later round, at once: it goes on with weights that have seen most of its text."""

TUNING_PASSES = 1
MOST_TUNING_PASSES = 3
"""Of weights that know a lot already: they soon know small data by heart."""


UNBOUNDED_STEPS = 100_000_000


@dataclass(frozen=True)
class StepBudget:
    """The steps of one training, and why so many."""

    least: int
    """Taken in any case."""
    most: int
    """Reached only while the loss on held-out text falls."""
    steps_per_pass: float
    """Steps of one pass over the data."""
    reason: str


def passes_over(steps: int, batch_sequences: int, sequences: int) -> float:
    """Return how often so many steps go over data of so many sequences; 0 where there is none."""
    return steps * batch_sequences / sequences if sequences else 0.0


def worthless_words(passes: float) -> str:
    """Return what is said after the number of passes where most teach nothing; empty: of fewer."""
    if round(passes) <= WORTHLESS_PASSES:
        return ""
    return (
        f"; more than {WORTHLESS_PASSES} over the same text are worthless (Muennighoff et al. 2023)"
    )


def many_passes_line(passes: float, *, is_least: bool = False) -> str:
    """Return the line about a training of more passes than teach anything; empty: of fewer.

    is_least: no more is known than that there are at least so many
    """
    if not (words := worthless_words(passes)):
        return ""
    least = "at least about " if is_least else ""
    return (
        f"It takes {least}{passes:,.0f} passes over the text{words}: take fewer steps, or more text"
    )


def first_budget(preset_steps: int, batch_sequences: int, sequences: int) -> StepBudget:
    """Return the steps of a training from random weights: the size's own, or four passes."""
    return _budget(preset_steps, batch_sequences, sequences, GOOD_PASSES, WORTHLESS_PASSES)


def later_budget(
    preset_steps: int, batch_sequences: int, sequences: int, passes_before: float
) -> StepBudget:
    """Return the steps of a later round, whose text was trained on so many times before.

    What was written for this round is new to the model, so there are two passes however many
    rounds came before.
    """
    most = max(LATER_PASSES, math.floor(WORTHLESS_PASSES - passes_before))
    return _budget(preset_steps, batch_sequences, sequences, LATER_PASSES, most)


def tuning_budget(batch_sequences: int, sequences: int) -> StepBudget:
    """Return the steps of a training of weights that others trained, whatever their size."""
    passes = TUNING_PASSES, MOST_TUNING_PASSES
    return _budget(UNBOUNDED_STEPS, batch_sequences, sequences, *passes)


def former_tuning_budget(preset_steps: int, batch_sequences: int, sequences: int) -> StepBudget:
    """Return the steps that round 1 of a cycle takes which an older build began with weights."""
    return _budget(preset_steps, batch_sequences, sequences, TUNING_PASSES, GOOD_PASSES)


def _budget(preset: int, batch: int, sequences: int, least: int, most: int) -> StepBudget:
    steps_per_pass = max(1, sequences) / batch
    at_least, at_most = (
        min(preset, math.ceil(passes * steps_per_pass)) for passes in (least, most)
    )
    if at_least == preset:
        passes = passes_over(preset, batch, max(1, sequences))
        reason = f"the size's own {preset:,} steps, {passes:.1f} passes over the data"
    elif at_most == at_least:
        reason = f"{_passes(least)} over the data"
    else:
        end = passes_over(at_most, batch, max(1, sequences))
        reason = f"{_passes(least)} over the data, up to {end:.0f} while held-out loss falls"
    return StepBudget(at_least, at_most, steps_per_pass, reason)


def _passes(count: int) -> str:
    return "one pass" if count == 1 else f"{count} passes"
