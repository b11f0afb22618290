"""How many of AdamW's steps Muon needs to end where AdamW ends, alone and as islands.

Owns the pairs of runs, their test and its table. Muon is given so many fewer steps, and its own
warm-up, level and fall within them: a point on the way of a longer run isn't comparable. Doesn't
know how runs train.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import mean, stdev
from typing import Literal

from jupiterd.cycle.base.student_t import t_cdf
from jupiterd.cycle.training.plan import ModelShape
from tests.bench.islands.contestants import Race
from tests.bench.islands.kept import KeptResults
from tests.bench.islands.losses import Contestant, verdict

Optimizer = Literal["adamw", "muon"]

GOAL_SHARE = 0.65
"""Of AdamW's steps. The anchor, modded-nanogpt's plain track: 3,250 of 5,625, or 0.58."""
GOAL_P = 0.01


def with_optimizer(shape: ModelShape, optimizer: Optimizer) -> ModelShape:
    """Return the shape as it is trained with another optimizer."""
    options = shape.recipe.options.model_copy(update={"optimizer": optimizer})
    return shape.model_copy(update={"recipe": shape.recipe.model_copy(update={"options": options})})


def print_recipes(
    races: Sequence[Race],
    rates: Mapping[Optimizer, float],
    share: float,
    kept: KeptResults,
    chosen: Sequence[Contestant],
) -> None:
    """Compare AdamW's end with Muon's after a share of its steps, over some seeds.

    Args:
        races: one for each seed, with AdamW's steps.
        rates: the learning rate of each, tuned before (`--seeds 1` with several rates).
        share: of AdamW's steps that Muon is given.
        kept: where results are found, and laid down.
        chosen: how each of them trains: alone, as islands.
    """
    for contestant in chosen:
        pairs = [
            (
                _reached(contestant, race, "adamw", rates["adamw"], 1.0, kept),
                _reached(contestant, race, "muon", rates["muon"], share, kept),
            )
            for race in races
        ]
        gains = [adamw - muon for adamw, muon in pairs]
        adamw, muon = (mean(side) for side in zip(*pairs, strict=True))
        print(
            f"recipe: {contestant.name}: AdamW {adamw:.4f}, Muon with {share:.2f} of its steps "
            f"{muon:.4f} bits per byte, {len(pairs)} seeds{_tested(gains, share)}",
            flush=True,
        )


def _reached(
    contestant: Contestant,
    race: Race,
    optimizer: Optimizer,
    rate: float,
    share: float,
    kept: KeptResults,
) -> float:
    """Return the bits per byte in the end, measured unless it is kept."""
    own = replace(
        race,
        shape=with_optimizer(race.shape, optimizer),
        steps=round(race.steps * share),
        learning_rate=rate,
    )
    name = f"{contestant.name} {optimizer} {own.steps} steps seed {race.seed}"
    settings = contestant.settings(own)
    result = kept.found(name, settings)
    if result is None:
        result = contestant.run(own)
        kept.keep(name, settings, result)
    print(f"  {name}, rate {rate:g}: {result.bits_per_byte:.4f} bits per byte", flush=True)
    return result.bits_per_byte


def _tested(gains: Sequence[float], share: float) -> str:
    """Say what the paired t test makes of Muon's gains; nothing of fewer than two seeds."""
    if len(gains) < 2:
        return ""
    error = stdev(gains) / math.sqrt(len(gains))
    p = t_cdf(-mean(gains) / error, len(gains) - 1)
    reached = verdict(share <= GOAL_SHARE and p < GOAL_P)
    return f", gain {mean(gains):+.4f} (p {p:.1e}) {reached} (goal {GOAL_SHARE}, p < {GOAL_P})"
