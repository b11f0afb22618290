"""What islands learn beside training alone and together: the contestants, and their table.

Owns who takes part, in which order, and what is said of it. Doesn't know how they train
(`contestants`), nor where results are kept (`kept`).
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from statistics import mean
from typing import Any

from jupiterd.cycle.islands.outer_orders import AVERAGE
from tests.bench.islands.contestants import EngineName, Outer, Race, Result, apart, synchronous
from tests.bench.islands.kept import KeptResults

ISLANDS = 4
MIXED: list[EngineName] = ["mlx", "torch", "torch", "torch"]
LATE = 10
"""The part of a round that an exchange takes, of islands that overlap: twice what is planned."""

ALONE, TOGETHER = "one island alone", f"{ISLANDS} in each step together"
LEAST_KEPT_PERCENT = 80
MOST_OVER_PERCENT = 1

Found = Mapping[int, Mapping[str, Result]]
"""Seed -> contestant -> what it reached."""


@dataclass(frozen=True)
class Contestant:
    """A way to train; without an outer step, so many batches are taken together in each step."""

    name: str
    engines: Sequence[EngineName]
    outer: Outer | None = None
    has_goals: bool = False

    def run(self, race: Race) -> Result:
        """Train to the end."""
        if self.outer is None:
            return Result(synchronous(race, len(self.engines)), 0, 0, 0)
        return apart(race, self.engines, self.outer)

    def settings(self, race: Race) -> dict[str, Any]:
        """Return all that decides what it reaches, in plain values."""
        packages = {"torch", "mlx", "mlx-lm"} if "mlx" in self.engines else {"torch"}
        return {
            "shape": race.shape.to_plain(),
            "plan": race.plan(1).to_plain(),
            "text": race.text.hash,
            "engines": [*self.engines],
            "outer": None if self.outer is None else told_of(self.outer, race),
            "versions": {name: version(name) for name in sorted(packages)},
        }


def told_of(outer: Outer, race: Race) -> dict[str, Any]:
    """Return how islands exchange, in plain values: each outer step's rate and momentum, too."""
    rounds = range(-(-race.steps // outer.every_steps))
    taken = [outer.settings(race.plan(1).schedule(), before) for before in rounds]
    return {
        "every_steps": outer.every_steps,
        "late_steps": outer.late_steps,
        "kind": outer.kind,
        "rates": [each.rate for each in taken],
        "momenta": [each.momentum for each in taken],
    }


def contestants(every: int) -> list[Contestant]:
    """Return everybody, those first without whom nothing can be compared."""
    outer = Outer(every)
    gang: list[EngineName] = ["torch"] * ISLANDS
    overlapping = replace(outer, late_steps=max(1, every // LATE))
    return [
        Contestant(ALONE, ["torch"]),
        Contestant(TOGETHER, gang),
        Contestant("islands that overlap", MIXED, overlapping, has_goals=True),
        Contestant("islands, plain average", MIXED, Outer(every, AVERAGE)),
        Contestant("islands that wait", MIXED, outer, has_goals=True),
        Contestant("one island with the outer step", ["torch"], outer),
    ]


def print_losses(
    races: Sequence[Race], every: int, kept: KeptResults, chosen: Sequence[str] = ("",)
) -> None:
    """Compare what is learned over some seeds.

    Args:
        races: one for each seed.
        every: steps between two exchanges.
        kept: where results are found, and laid down.
        chosen: parts of the names of who trains; others are told of where they are kept.
    """
    everybody = contestants(every)
    found: dict[int, dict[str, Result]] = {race.seed: {} for race in races}
    for race in races:
        for each in everybody:
            name, settings = f"{each.name} seed {race.seed}", each.settings(race)
            result = kept.found(name, settings)
            if result is None and any(part in each.name for part in chosen):
                result = each.run(race)
                kept.keep(name, settings, result)
            if result is not None:
                found[race.seed][each.name] = result
                _print_one(race.seed, each, result)
    print_table(found, everybody)


def _print_one(seed: int, contestant: Contestant, result: Result) -> None:
    print(f"  seed {seed}: {contestant.name}: {result.bits_per_byte:.4f} bits per byte")
    if result.rounds:
        equal = f"{result.equal_rounds} of {result.rounds} rounds end with equal weights"
        print(f"    {equal}; an island sent {result.sent_bytes:,} bytes")
    sys.stdout.flush()


def print_table(found: Found, everybody: Sequence[Contestant]) -> None:
    """Say what each has reached in the mean, and what part of the gain that keeps.

    Each is compared with those alone and together of the very seeds that it has run with.
    """
    for each in everybody:
        seeds = [seed for seed in found if {ALONE, TOGETHER, each.name} <= {*found[seed]}]
        if seeds:
            alone, together, own = (
                mean(found[seed][name].bits_per_byte for seed in seeds)
                for name in (ALONE, TOGETHER, each.name)
            )
            reached = f"losses: {each.name}: {own:.4f} bits per byte, mean of {len(seeds)} seeds"
            print(reached + (f"; {_compared(each, alone, together, own)}" if each.outer else ""))


def _compared(contestant: Contestant, alone: float, together: float, own: float) -> str:
    """Say how much of the gain is kept; all are means of the same seeds, in bits per byte."""
    if together >= alone:
        return "training together gained nothing: too short a run to compare"
    kept, over = 100 * (alone - own) / (alone - together), 100 * (own / together - 1)
    if not contestant.has_goals:
        return f"keeps {kept:.0f} % of the gain, ends {over:+.2f} % from together"
    return (
        f"keeps {kept:.0f} % of the gain {verdict(kept >= LEAST_KEPT_PERCENT)} "
        f"(goal {LEAST_KEPT_PERCENT}), ends {over:+.2f} % from together "
        f"{verdict(over <= MOST_OVER_PERCENT)} (goal {MOST_OVER_PERCENT})"
    )


def verdict(is_reached: bool) -> str:
    """Return the word that stands behind a figure with a goal."""
    return "[reached]" if is_reached else "[MISSED]"
