"""Prints how gangs heal, beside the goals.

python -m tests.bench.train [--only TEXT] [--trials N] [--seed N]
"""

import argparse
import asyncio
import random

from tests.bench.figure import Figure, Goal, line, machine
from tests.bench.train.kills import Struck, kills

GOALS = {
    "torch": (Goal(0.99, 2.0),),
    "mlx": (Goal(0.5, 2.0), Goal(0.99, 4.0)),
}
TOLD = (Goal(0.99, 0.25),)
TRIALS = 20


async def _never() -> float:
    raise AssertionError("figures of one gang are measured together")


async def print_kills(engine: str, trials: int, seed: int) -> None:
    """Strike one gang again and again; print each change, and both figures."""
    struck: list[Struck] = []
    async for strike in kills(engine, trials, random.Random(seed)):
        struck.append(strike)
        print(
            f"  told {strike.told_s:.2f}  trained {strike.trained_s:.2f}  "
            f"step {strike.step} -> {strike.resumed_from}  [{strike.change}]",
            flush=True,
        )
    told = Figure(f"kill -9 of a rank -> told, {engine}", "s", TOLD, _never)
    trained = Figure(f"kill -9 of a rank -> next step, {engine}", "s", GOALS[engine], _never)
    print(line(told, [strike.told_s for strike in struck]))
    print(line(trained, [strike.trained_s for strike in struck]))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="figures whose name holds this text")
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    print(machine())
    for engine in ("torch", "mlx"):
        if chosen.only in f"kill {engine}":
            asyncio.run(print_kills(engine, chosen.trials, chosen.seed))


main()
