"""Many seeds, on all cores: python -m tests.simulation FIRST COUNT [PROFILE | --trace].

Owns the long run. A failing seed is told, the first few with their last events; the exit
status is 1 then.
"""

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

from tests.simulation.profiles import BY_NAME
from tests.simulation.seeds import SeedFailed, run_seed

CHUNK = 200
SHOWN = 5
TRACE = "--trace"


def main(arguments: list[str]) -> int:
    """Run the seeds and return the exit status."""
    first, count = int(arguments[0]), int(arguments[1])
    wanted = arguments[2] if len(arguments) > 2 else ""
    if wanted == TRACE:
        for seed in range(first, first + count):
            print(seed, run_seed(seed))
        return 0
    failures = list(_show(_run(first, count, wanted), count))
    print(f"{count} seeds, {len(failures)} failed")
    return 1 if failures else 0


def _run(first: int, count: int, wanted: str) -> Iterator[list[str]]:
    """Yield the failures of one chunk after another."""
    starts = range(first, first + count, CHUNK)
    ends = [min(start + CHUNK, first + count) for start in starts]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(run_chunk, starts, ends, [wanted] * len(ends))


def _show(chunks: Iterator[list[str]], count: int) -> Iterator[str]:
    shown = done = 0
    for failures in chunks:
        done = min(done + CHUNK, count)
        for failure in failures:
            print(failure if shown < SHOWN else failure.partition("\n")[0], flush=True)
            shown += 1
            yield failure
        print(f"{done} of {count} seeds, {shown} failed", file=sys.stderr, flush=True)


def run_chunk(start: int, end: int, wanted: str) -> list[str]:
    """Return what each failing seed says."""
    failures: list[str] = []
    for seed in range(start, end):
        try:
            run_seed(seed, BY_NAME.get(wanted))
        except SeedFailed as failed:
            failures.append(str(failed))
    return failures


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
