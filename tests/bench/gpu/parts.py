"""The parts of `make gpu-check`, each by its name: `python -m tests.bench.gpu.parts NAME`.

Owns their names and limits. Doesn't know how they measure.
"""

import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from tests.bench.gpu import (
    loops,
    marked_tests,
    matrix_product,
    micro_batches,
    nursery,
    quantized,
    scoring,
    starts,
    writing,
)
from tests.bench.gpu.row import Row


@dataclass(frozen=True)
class Part:
    """What is measured by one process."""

    measure: Callable[[], Iterator[Row]]
    timeout_s: float


PARTS = {
    "matrix product": Part(matrix_product.rows, 60),
    "tests": Part(marked_tests.rows, 90),
    "loop of 100m": Part(partial(loops.rows, "100m"), 240),
    "micro batches": Part(micro_batches.rows, 180),
    "writing": Part(writing.rows, 90),
    "scoring": Part(scoring.rows, 60),
    "quantized bases": Part(quantized.rows, 60),
    "nursery": Part(nursery.rows, 45),
    "loop of GPT-2": Part(partial(loops.rows, "GPT-2"), 240),
    "graphs of 100m": Part(loops.graph_rows, 240),
    "starts": Part(starts.rows, 200),
    "loop of 350m": Part(partial(loops.rows, "350m"), 240),
    "loop of 1b": Part(partial(loops.rows, "1b"), 240),
}
"""In the order of how much depends on them. The compiler took 25 to 60 s for a shape, on equal
machines: the last parts may find no time, and are run in a call of their own, by `ONLY`."""


def main() -> None:
    """Print the rows of one part as they come."""
    warnings.simplefilter("ignore")
    for row in PARTS[sys.argv[1]].measure():
        print(row.to_json(), flush=True)


if __name__ == "__main__":
    main()
