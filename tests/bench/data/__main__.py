"""Prints how fast the data engine is, beside its goals.

python -m tests.bench.data [--only TEXT] [--trials N] [--size N]
"""

import argparse

from tests.bench.data.extraction import print_extraction
from tests.bench.data.filters import filters
from tests.bench.data.leases import print_leases
from tests.bench.data.pages import print_pages
from tests.bench.data.reading import print_reading
from tests.bench.figure import machine

TRIALS = 3
SIZE = 3000

FIGURES = {
    "extraction": lambda trials, _size: print_extraction(trials),
    "filters": filters,
    "leases": lambda _trials, _size: print_leases(),
    "pages": lambda _trials, _size: print_pages(),
    "reading": lambda trials, _size: print_reading(trials=trials),
}
"""Name -> what measures and prints it, told how often and with how many documents."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="figures whose name holds this text")
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--size", type=int, default=SIZE, help="documents")
    chosen = parser.parse_args()
    print(machine())
    for name, measure in FIGURES.items():
        if chosen.only in name:
            measure(chosen.trials, chosen.size)


main()
