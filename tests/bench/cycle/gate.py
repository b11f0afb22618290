"""Prints how often the shipped gate is wrong: simulated cycles and candidates, with a seed."""

import time
from random import Random

from jupiterd.cycle.holdout.holdout_rules import HoldoutRules
from tests.bench.cycle.drawn_candidates import HeldOut, null_cycles, promotions
from tests.bench.cycle.small_holdouts import (
    CLUSTER_SHARE,
    Collection,
    false_promotions,
    power,
    skewed,
    symmetric,
    very_skewed,
)

SEED = 8

UNEQUAL = (40, 30, 24, 20, 16, *(10,) * 15, *(6,) * 15, *(3,) * 10)
"""400 documents of 45 clusters, as unequal as top-level modules are."""

SEPARATE = (1,) * 400


def print_gate(trials: int) -> None:
    """Print false promotions, power, and what becomes of planted candidates."""
    began_s = time.perf_counter()
    print(f"gate, seed {SEED}, {trials:,} draws each, 400 documents, paired SD 0.04, margin 0.005")
    _print_null(trials)
    _print_power(trials)
    planted = promotions(Random(SEED), HeldOut(UNEQUAL), 0.0, trials)
    print(
        f"  planted A/A candidates promoted: {planted} of {trials:,}"
        f"  [0 {'reached' if planted == 0 else 'MISSED'}]"
    )
    _print_small(trials)
    print(f"  in {time.perf_counter() - began_s:.0f} s")


def _print_small(trials: int) -> None:
    print(
        f"  collections of so many documents in so many unequal folders, each of which has "
        f"{CLUSTER_SHARE:.0%} of the variance in common; held out as a cycle does"
    )
    for documents in (60, 120, 400):
        for folders in (6, 12, 40):
            text = Collection(documents, folders, HoldoutRules("bench"))
            wrong = false_promotions(text, symmetric, trials, SEED)
            skew, more = (
                false_promotions(text, draw, trials, SEED) for draw in (skewed, very_skewed)
            )
            seen = ", ".join(
                f"{gain:g} {power(text, gain, look, trials, SEED):.0%} at look {look}"
                for gain, look in ((0.02, 1), (0.05, 1), (0.05, 3))
            )
            print(
                f"    {documents} in {folders}: the gate has {len(text.judged)} of {text.clusters} "
                f"clusters; false PROMOTE in 20 rounds {wrong:.1%}, where errors have skewness -1 "
                f"{skew:.1%}, -2 {more:.1%}  "
                f"[<= 5 % {'reached' if max(wrong, skew, more) <= 0.05 else 'MISSED'}]; "
                f"a true gain is promoted: {seen}",
                flush=True,
            )


def _print_null(trials: int) -> None:
    found = null_cycles(Random(SEED), HeldOut(UNEQUAL), trials)
    share = found.gate / trials
    print(
        f"  cycles of 20 rounds with a false promotion: {share:.1%}"
        f"  [<= 5 % {'reached' if share <= 0.05 else 'MISSED'}]"
    )
    print(
        f"  beside it: the same test with 5 % at each look {found.no_ledger / trials:.1%}, "
        f"one that also takes documents of a cluster for independent {found.naive / trials:.1%}"
    )


def _print_power(trials: int) -> None:
    for name, text, look, goal in (
        ("separate documents", HeldOut(SEPARATE, cluster_share=0.0), 1, 0.95),
        ("separate documents", HeldOut(SEPARATE, cluster_share=0.0), 20, None),
        ("45 unequal clusters", HeldOut(UNEQUAL), 1, None),
    ):
        share = promotions(Random(SEED), text, 0.015, trials, look) / trials
        told = "" if goal is None else f"  [>= 95 % {'reached' if share >= goal else 'MISSED'}]"
        print(f"  a true gain of 0.015 is promoted, {name}, look {look}: {share:.1%}{told}")
