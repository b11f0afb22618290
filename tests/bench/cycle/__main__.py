"""Prints how sound the self-improving cycle is, and how fast, beside its goals.

python -m tests.bench.cycle [--only TEXT] [--trials N] [--keep FOLDER] [--pages FOLDER]
"""

import argparse
from pathlib import Path

from tests.bench.cycle.collapse import print_collapse
from tests.bench.cycle.gate import print_gate
from tests.bench.cycle.generate import print_generate
from tests.bench.cycle.judges import print_judges
from tests.bench.cycle.scoring import print_scoring
from tests.bench.cycle.students import print_students
from tests.bench.cycle.whole import print_whole
from tests.bench.figure import machine

FIGURES = {
    "gate": print_gate,
    "judges": print_judges,
    "collapse": print_collapse,
    "generate": print_generate,
    "scoring": print_scoring,
    "whole": print_whole,
}
"""Name -> what measures and prints it, told how many cycles or candidates to draw."""

STUDENTS = "students"
"""The figure of small students, which are real ones and take some minutes to train."""

TRIALS = 1000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="figures whose name holds this text")
    parser.add_argument("--trials", type=int, default=TRIALS, help="cycles, or candidates, drawn")
    parser.add_argument("--keep", type=Path, help="folder for the scores of small students")
    parser.add_argument("--pages", type=Path, help="folder of text for them, in place of Python's")
    chosen = parser.parse_args()
    print(machine())
    for name, measure in FIGURES.items():
        if chosen.only in name:
            measure(chosen.trials)
    if chosen.only in STUDENTS:
        print_students(chosen.trials, chosen.keep, chosen.pages)


main()
