"""Prints what becomes of the gate where a judge may break ties: simulated judges, with a seed."""

import time
from random import Random

from tests.bench.cycle.drawn_candidates import HeldOut
from tests.bench.cycle.drawn_judges import (
    COIN,
    FIRST_PLACE,
    GOOD,
    NARROW,
    PARTIAL,
    Answers,
    Heard,
    cycles_with,
)

SEED = 8
TEXT = HeldOut((6, 5, 4, 3, *(2,) * 12, *(1,) * 10), paired_sd=NARROW)
MARGIN = TEXT.settings.margin_bpb
SHARE_OF_TRIALS = 4
"""A round with a judge takes four times as long to draw as one without."""


def print_judges(trials: int) -> None:
    """Print how often cycles are fooled, and what a good judge finds."""
    cycles, began_s = max(1, trials // SHARE_OF_TRIALS), time.perf_counter()
    print(f"judges, seed {SEED}, {cycles:,} cycles of 20 rounds each, 83 pairs of 34 clusters")
    for name, judge, gain in (
        ("one that tosses coins, candidates at the margin", COIN, MARGIN),
        ("one that likes the first place, candidates at the margin", FIRST_PLACE, MARGIN),
        ("a good one, candidates at the margin", GOOD, MARGIN),
        ("a good one, candidates like the last student", GOOD, 0.0),
        ("one that adores them, candidates worse by the margin", PARTIAL, -MARGIN),
    ):
        _print_fooled(name, cycles_with(Random(SEED), judge, TEXT, gain, cycles))
    _print_power(cycles)
    print(f"  in {time.perf_counter() - began_s:.0f} s")


def _print_fooled(name: str, found: Heard) -> None:
    share = found.fooled / found.cycles
    heard = f"heard in {found.ties - found.abstained:,} of {found.ties:,} ties"
    print(
        f"  {name}: {share:.1%} of cycles promote, {found.by_judge / found.cycles:.1%} by the "
        f"judge, which was {heard}  [<= 5 % {'reached' if share <= 0.05 else 'MISSED'}]"
    )


def _print_power(candidates: int) -> None:
    better = Answers(win_chance=0.7, cluster_spread=0.1)
    found = cycles_with(Random(SEED), GOOD, TEXT, MARGIN / 2, candidates, rounds=1, answers=better)
    share = found.by_judge / max(1, found.ties)
    print(f"  ties whose candidate has the better answer in 70 %: {share:.1%} are promoted, look 1")
