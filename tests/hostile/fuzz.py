"""Odd bytes for every reader, for as long as one likes: `make fuzz [FUZZ_SECONDS=3600] [SEED=7]`.

Owns the time and the figures. Each reader gets as many inputs as the others; those that take longer
get more of the time. A failure names the input; the others go on, and all are told at the end.
"""

import secrets
import sys
import time
from collections import Counter

from tests.hostile.readers import READERS, attempt

BATCH = 200
TOLD_EVERY_S = 60.0
MAX_FAILURES = 20
"""More of them are hardly read."""


def main(seconds: float, seed: int) -> int:
    """Try until the time is over; return how many inputs broke a promise."""
    print(f"{len(READERS)} readers, {seconds:g} s, seed {seed}", flush=True)
    began_s, told_s = time.monotonic(), 0.0
    tried, spent_s = Counter[str](), dict.fromkeys(READERS, 0.0)
    failures: list[str] = []
    while (elapsed_s := time.monotonic() - began_s) < seconds and len(failures) < MAX_FAILURES:
        if elapsed_s - told_s >= TOLD_EVERY_S:
            told_s = elapsed_s
            print(f"{elapsed_s:5.0f} s  {tried.total():,} inputs", flush=True)
        for name in READERS:
            at_s = time.process_time()
            for number in range(tried[name], tried[name] + BATCH):
                try:
                    attempt(name, seed + number)
                except AssertionError as error:
                    failures.append(f"{error}: {error.__cause__!r}")
                    print(f"FAILED {failures[-1]}", flush=True)
            tried[name] += BATCH
            spent_s[name] += time.process_time() - at_s
    for name, count in tried.items():
        print(f"{count:>12,}  {1e6 * spent_s[name] / count:7.0f} us each  {name}")
    elapsed_s = time.monotonic() - began_s
    print(f"{tried.total():,} inputs in {elapsed_s:.0f} s, {len(failures)} failures (seed {seed})")
    return len(failures)


if __name__ == "__main__":
    given = dict(enumerate(sys.argv))
    sys.exit(min(1, main(float(given.get(1, "3600")), int(given.get(2) or secrets.randbits(40)))))
