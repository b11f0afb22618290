"""How many steps islands train between two exchanges, by what the last one has cost.

Owns this decision. Pure. An exchange is more than what wires take: ways are packed, told of and
merged. Fast machines with a small model have a round done before that is, so the planner's figure
(`allreduce_cost`) is the least here. Whatever else holds all islands up between their steps counts
as well. Doesn't know wires, or who trains.

    blocking     19 exchanges' time (`allreduce_cost`)
    overlapped   as many steps more as would have fitted into the wait, where that was more than a
                 twentieth of the round's time; where it was less than half of that, a twentieth
                 fewer, unless a round of another length is open

A round is at most twice as long as the one that has ended, and at most a twentieth shorter: one
delay mustn't part islands for long.
"""

import math
from dataclasses import dataclass
from typing import Final

from jupiterd.cluster.links.allreduce_cost import MOST_INNER_STEPS, STEPS_OF_AN_EXCHANGE

MOST_WAITED: Final = 1 / (STEPS_OF_AN_EXCHANGE + 1)
"""Of a round's time."""

MOST_GROWTH: Final = 2
DECAY: Final = 0.95


@dataclass(frozen=True)
class EndedRound:
    """A round that has just ended, and tells what an exchange costs."""

    steps: int
    trained_s: float
    """How long the slowest island's steps took."""
    elapsed_s: float
    """Since the round before ended."""


def paced_steps(planned: int, newest: int, ended: EndedRound | None, lag: int = 1) -> int:
    """Return how many steps the next round has.

    Args:
        planned: what the wires alone would ask for.
        newest: what the round was given that was ordered last: the one that has ended, or, where
            islands train on meanwhile, the one that they are at.
        ended: None where nothing is known.
        lag: 1: islands wait for the exchange; 2: they train on meanwhile.
    """
    wanted = newest if ended is None else _following(newest, ended, lag)
    return min(max(planned, wanted), MOST_INNER_STEPS)


def _following(newest: int, ended: EndedRound, lag: int) -> int:
    waited_s = ended.elapsed_s - ended.trained_s
    missed = waited_s * ended.steps / ended.trained_s
    least, most = math.floor(DECAY * ended.steps), MOST_GROWTH * ended.steps
    if lag == 1:
        return min(max(least, math.ceil(STEPS_OF_AN_EXCHANGE * missed)), most)
    if waited_s > MOST_WAITED * ended.elapsed_s:
        return max(newest, min(ended.steps + math.ceil(missed), most))
    is_cheap = waited_s < MOST_WAITED / 2 * ended.elapsed_s
    return least if is_cheap and newest == ended.steps else newest
