"""A race of programs that tune one model: a step each by turns, and what each took.

Owns the order, what is told meanwhile, and the table: tokens/s by the clock and by processor time,
peak memory, each beside ours. Doesn't know what is trained, nor by whom.
"""

import os
import statistics
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from jupiterd.processes.environment import worker_environment
from tests.bench.train.moment import Moment
from tests.bench.train.rivals.turns import Contestant

ROOT = Path(__file__).resolve().parents[4]
OURS = "ours"
GIB = 1 << 30


@dataclass(frozen=True)
class Race:
    """Who races, and on what."""

    module: str
    """Which Python runs for each: ENGINE WHO MODEL DATA STEPS."""
    engine: str
    rivals: Mapping[str, float]
    """Who -> how many times as fast as they we are to be."""
    tokens: int
    """Of a step."""
    most_memory: float = 0.0
    """How many times as much memory as theirs we may take; 0: it isn't told."""


@dataclass(frozen=True)
class Taken:
    """What one of them took."""

    steps: list[Moment]
    peak_bytes: int
    """Of its process, the loading of the model among it."""


def begun(race: Race, who: str, model: Path, data: Path, steps: int) -> Contestant:
    """Return a process that takes so many steps, by turns, in the environment of a worker."""
    how = {"engine": race.engine, "threads": os.cpu_count() or 1}
    environment = worker_environment("train", how) | {"PYTHONPATH": str(ROOT)}
    words = race.engine, who, str(model), str(data), str(steps)
    log = data / f"{who.replace(' ', '-')}.log"
    return Contestant([sys.executable, "-m", race.module, *words], environment, log)


def taken_by_turns(race: Race, model: Path, data: Path, rounds: int) -> dict[str, Taken]:
    """Return what each took in each round; tell it at once: a run that is cut has told it, too."""
    everybody = [OURS, *race.rivals]
    times: dict[str, list[Moment]] = {who: [] for who in everybody}
    with ExitStack() as at_end:
        contestants: dict[str, Contestant] = {}
        for who in everybody:  # one after the other: the first step is taken alone, too
            contestants[who] = begun(race, who, model, data, 1 + rounds)
            at_end.callback(contestants[who].end)
            contestants[who].step(is_first=True)
        for number in range(rounds):
            # Whoever begins a round is another one each time.
            for who in everybody[number % len(everybody) :] + everybody[: number % len(everybody)]:
                times[who].append(contestants[who].step())
            told = (
                f"{who} {steps[-1].processor_s:.2f} s ({steps[-1].clock_s:.2f} s)"
                for who, steps in times.items()
            )
            print(f"  processor time (clock) of a step: {', '.join(told)}", flush=True)
        return {who: Taken(times[who], contestants[who].peak_bytes()) for who in everybody}


def print_rates(race: Race, times: Mapping[str, Taken]) -> None:
    """Print what each takes, and ours beside the others'."""
    for who, taken in times.items():
        clock = race.tokens / statistics.median(step.clock_s for step in taken.steps)
        processor = race.tokens / statistics.median(step.processor_s for step in taken.steps)
        told = f"  {who}: {clock:,.0f} tokens/s, {processor:,.0f} for each second of processor time"
        if race.most_memory:
            told += f", peak {taken.peak_bytes / GIB:.2f} GiB"
        if who in race.rivals:
            told += _beside(race, who, times)
        print(told, flush=True)


def _beside(race: Race, who: str, times: Mapping[str, Taken]) -> str:
    pairs = list(zip(times[who].steps, times[OURS].steps, strict=True))
    by_clock = statistics.median(a.clock_s / b.clock_s for a, b in pairs)
    by_processor = statistics.median(a.processor_s / b.processor_s for a, b in pairs)
    goal = race.rivals[who]
    told = f"; ours is {by_clock:.2f} x by the clock, {by_processor:.2f} x by processor time"
    told += f" [>= {goal} {_verdict(is_reached=by_processor >= goal)}]"
    if not race.most_memory:
        return told
    memory = times[OURS].peak_bytes / times[who].peak_bytes
    is_reached = memory <= race.most_memory
    return (
        f"{told}, memory {memory:.2f} x [<= {race.most_memory} {_verdict(is_reached=is_reached)}]"
    )


def _verdict(*, is_reached: bool) -> str:
    return "reached" if is_reached else "MISSED"
