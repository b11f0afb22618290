"""Prints every figure of the cluster's core beside its goal.

python -m tests.bench.cluster [--only TEXT] [--trials N]
"""

import argparse
import asyncio

from tests.bench.cluster import history, idle, leading, meeting, placement
from tests.bench.figure import line, machine, measure

FIGURES = (
    *history.FIGURES,
    *placement.FIGURES,
    *meeting.FIGURES,
    *leading.FIGURES,
    *idle.FIGURES,
)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="figures whose name holds this text")
    parser.add_argument("--trials", type=int, default=0, help="how often each; 0: as it says")
    chosen = parser.parse_args()
    print(machine())
    for figure in FIGURES:
        if chosen.only in figure.name:
            values = asyncio.run(measure(figure, chosen.trials or figure.trials))
            print(line(figure, values), flush=True)


main()
