"""A point in time, by the clock and by the processor time of this process.

On a machine that does other things, too, the clock says how busy it is, and the other how much work
was done: with one thread, nothing of the others' is in it.
"""

import time
from typing import NamedTuple


class Moment(NamedTuple):
    clock_s: float
    processor_s: float

    def since(self, earlier: "Moment", steps: int) -> "Moment":
        """Return how long each of some steps took."""
        pairs = zip(self, earlier, strict=True)
        return Moment(*((later - before) / steps for later, before in pairs))


def now() -> Moment:
    return Moment(time.perf_counter(), time.process_time())
