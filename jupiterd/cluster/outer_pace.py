"""How many steps islands train between two exchanges, by what exchanges have cost them so far.

Owns this decision. Pure. An exchange is more than what wires take: ways are packed, told of and
merged. Fast machines with a small model have a round done before that is, so the planner's figure
(`sync_time`) is the least here. Doesn't know wires, or who trains.

    of a round's time islands waited for   the next round has
    more than a twentieth, blocking        19 exchanges' time (`sync_time`)
    more than a twentieth, overlapped      as many steps more as would have fitted into the wait
    less than half of that                 a tenth fewer steps
    anything between                       as many

A round is twice as long as one before it at most: one delay mustn't part islands for long.
"""

import math
from typing import Final

from jupiterd.cluster.facts import OuterStepTaken
from jupiterd.cluster.outer_line import Steps
from jupiterd.cluster.outer_speeds import measured_rounds
from jupiterd.cluster.sync_time import MOST_INNER_STEPS, STEPS_OF_AN_EXCHANGE

MOST_WAITED: Final = 1 / (STEPS_OF_AN_EXCHANGE + 1)
"""Of a round's time."""

MOST_GROWTH: Final = 2
DECAY: Final = 0.9


def paced_steps(line: Steps, planned: int) -> int:
    """Return how many steps the next round has.

    Args:
        line: the outer steps so far. Those without an island that should be in them tell how long
            it was waited for, and nothing of exchanges.
        planned: what the wires alone would ask for.
    """
    timed = [pair for pair in measured_rounds(line) if _tells_of_an_exchange(pair[1])]
    if not timed:
        return planned
    ended, step = timed[-1]
    trained_s = max(step.trained_s.values())
    wanted = _following(ended.steps, trained_s, step.elapsed_s - trained_s, step.lag)
    return min(max(planned, wanted), MOST_INNER_STEPS)


def _tells_of_an_exchange(step: OuterStepTaken) -> bool:
    is_timed = step.elapsed_s > 0 and all(step.trained_s.get(each) for each in step.islands)
    return is_timed and not step.left_out


def _following(steps: int, trained_s: float, waited_s: float, lag: int) -> int:
    """Return how long a round is after one of so many steps."""
    share = waited_s / (trained_s + waited_s)
    if share <= MOST_WAITED:
        return steps if share > MOST_WAITED / 2 else math.floor(DECAY * steps)
    missed = math.ceil(waited_s * steps / trained_s)
    wanted = STEPS_OF_AN_EXCHANGE * missed if lag == 1 else steps + missed
    return min(MOST_GROWTH * steps, wanted)
