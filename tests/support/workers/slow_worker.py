"""A worker whose every sequence takes so much longer, as on a slow machine.

python -m tests.support.workers.slow_worker SECONDS MODULE ARGUMENTS
"""

import runpy
import sys
import time
from typing import Any

from jupiterd.cycle.training.batch_shares import Shares
from jupiterd.workers.train.loop import TrainingLoop


def slow_down(sequence_s: float) -> None:
    """Let each sequence take longer, and count as computed."""
    loop: Any = TrainingLoop
    step = loop._step

    def slowly(self: Any, number: int, shares: Shares, learning_rate: float) -> Any:
        more_s = shares[self.engine.rank] * sequence_s
        time.sleep(more_s)  # noqa: TID251 - a slow machine
        found = step(self, number, shares, learning_rate)
        self.engine.computed_s += more_s
        return found

    loop._step = slowly


if __name__ == "__main__":
    slow_down(float(sys.argv[1]))
    module, sys.argv = sys.argv[2], sys.argv[2:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
