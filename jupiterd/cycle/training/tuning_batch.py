"""How many sequences a step takes that tunes given weights: few enough for many steps.

Pure. Owns that rule, for runs and for cycles' rounds. Doesn't know rates (`tuning`) or passes
(`step_budget`).

A size's own batch suits the text that its random weights are trained on. Of a megabyte it makes
four steps a pass, and Adam moves a weight by no more than about its rate in each: that tunes almost
nothing. Twelve steps of four sequences of 256 tokens already brought SmolLM2-135M 0.04 bits per
byte. A batch of so few is noisy, but small ones are taken only where steps are few: fewer than 100
a pass, 300 in three. At the usual rate that takes no weight farther than a quarter of the way of
Alpaca's 1,200 steps, from which the rate comes, so it needn't be lowered.
"""

from collections.abc import Collection

STEPS_OF_A_PASS = 100
"""As many as the text allows, and more where it is larger than the most sequences of a step."""

LEAST_SEQUENCES = 4
"""Fewer were never tried."""

MICRO_BATCH, ACCUMULATION = "batch_size", "gradient_accumulation_steps"
"""Settings of a run that are said together."""


def tuning_batch(sequences: int, least: int, most: int) -> int:
    """Return the sequences of a step.

    Args:
        sequences: of the data.
        least: fewer are never taken.
        most: as the size has it, or the run's settings; more are never taken, whatever `least` is.
    """
    return min(most, max(least, sequences // STEPS_OF_A_PASS))


def batch_lines(batch: int, least: int, *, is_known: bool) -> list[str]:
    """Return what is said of a batch that follows from the data; nothing of one that doesn't.

    Args:
        batch: sequences of a step, or the most where nobody knows yet.
        least: as of `tuning_batch`; 0: it doesn't.
        is_known: the data has been counted.
    """
    if not least:
        return []
    size = f"{batch:,}" if is_known or least >= batch else f"{least:,} to {batch:,}"
    why = f"a pass over it has {STEPS_OF_A_PASS} steps where there is enough"
    return [f"Batch of {size} sequences: follows from the text, so that {why}"]


def step_lines(
    said: Collection[str], micro_batch: int, accumulation: int, sequences: int, seq_len: int
) -> list[str]:
    """Return what a step trains on where people said a part of it; nothing where they said both.

    Args:
        said: the names of the options that they gave.
        micro_batch: what `--batch-size` says.
        accumulation: micro-batches of a step on each rank.
        sequences: of a step, on all ranks together.
        seq_len: tokens of a sequence.
    """
    if MICRO_BATCH not in said or ACCUMULATION in said or accumulation == 1:
        return []
    fewest = sequences // accumulation
    line = (
        f"A step trains on {sequences:,} sequences ({sequences * seq_len:,} tokens), though a "
        f"device holds {micro_batch:,} at a time: {accumulation} micro-batches each are usual; "
        f"--gradient-accumulation-steps 1 makes it {fewest:,}"
    )
    return [line]
