"""How many items the work queue leases and finishes in a second, on one core.

python -m tests.bench.data.leases [ITEMS]
"""

import sys
import tempfile
import time
from pathlib import Path

from jupiterd.workers.data.collect.work_queue import WorkQueue

ITEMS = 100_000
BATCH = 64
GOAL_PER_S = 10_000


def items_per_s(items: int, batch: int) -> float:
    """Put, lease and finish so many items, each with a result of its own."""
    with (
        tempfile.TemporaryDirectory() as folder,
        WorkQueue(Path(folder) / "queue.db") as queue,
    ):
        queue.put((f"item-{number}", b"what is to be done") for number in range(items))
        began_s = time.perf_counter()
        done = 0
        while leased := queue.lease(batch):
            queue.finish([(item.key, b"what came of " + item.key.encode()) for item in leased])
            done += len(leased)
        elapsed_s = time.perf_counter() - began_s
        assert done == len(list(queue.results())) == items
    return items / elapsed_s


def print_leases(items: int = ITEMS) -> None:
    """Print the figure for batches, and for items leased one by one."""
    for batch in (BATCH, 1):
        rate = items_per_s(items, batch)
        goal = f"   goal >= {GOAL_PER_S:,}" if batch == BATCH else ""
        print(f"leased and finished, {batch:3} at a time: {rate:10,.0f} items/s{goal}")


if __name__ == "__main__":
    print_leases(int(sys.argv[1]) if len(sys.argv) > 1 else ITEMS)
