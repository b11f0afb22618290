"""Prints how fast artifacts travel, beside what the wire gives.

python -m tests.bench.artifacts [--only TEXT] [--trials N] [--mib 512] [--mbit 1000] [--folder DIR]
"""

import argparse
import asyncio

from tests.bench.artifacts.giving import Scale, figures
from tests.bench.figure import line, machine, measure


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="figures whose name holds this text")
    parser.add_argument("--trials", type=int, default=0, help="how often each; 0: as it says")
    parser.add_argument("--mib", type=int, default=512, help="the artifact's size")
    parser.add_argument("--mbit", type=int, default=1000, help="what each link carries")
    parser.add_argument("--folder", default="/dev/shm", help="where the stores lie")
    chosen = parser.parse_args()
    print(f"{machine()}; stores in {chosen.folder}")
    scale = Scale(chosen.mib << 20, chosen.mbit * 1_000_000, chosen.folder)
    for figure in figures(scale):
        if chosen.only in figure.name:
            values = asyncio.run(measure(figure, chosen.trials or figure.trials))
            print(line(figure, values), flush=True)


main()
