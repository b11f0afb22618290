"""How fast islands have trained, as their outer steps tell.

Owns these sums. Pure. What the first step tells that merges anything is left out: engines start
then, and nobody's part may be by its speed yet. Doesn't know what was predicted.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from jupiterd.cluster.facts.facts import OuterStepTaken
from jupiterd.cluster.ledger.outer_branch import Steps
from jupiterd.ids import CycleId


@dataclass(frozen=True)
class Stretch:
    """So much was trained in so long."""

    tokens: int
    steps: int
    elapsed_s: float

    @property
    def tokens_per_s(self) -> float:
        """Return the rate; 0 where nothing was measured."""
        return self.tokens / self.elapsed_s if self.elapsed_s > 0 else 0.0


def usual_islands(line: Steps) -> tuple[CycleId, ...]:
    """Return whose ways were merged in most of the steps that tell how long they took."""
    seen = Counter(step.islands for _, step in _timed(line))
    return max(seen, key=lambda islands: seen[islands], default=())


def of_all(line: Steps, newest: int = 0, islands: Sequence[CycleId] = ()) -> Stretch:
    """Return what all islands did together, exchanges and waiting among it.

    Args:
        line: their outer steps.
        newest: outer steps that count, from the line's end on; 0: all.
        islands: only steps that merge the ways of these, and no others; none: all steps.
    """
    timed = [pair for pair in _timed(line) if not islands or pair[1].islands == tuple(islands)]
    did = [_did(*pair) for pair in timed[-newest:]]
    return Stretch(
        sum(each.tokens for each in did),
        sum(each.steps for each in did),
        sum(each.elapsed_s for each in did),
    )


def rounds(line: Steps) -> list[tuple[OuterStepTaken, Stretch]]:
    """Return what all islands did in each round that was timed, with the step that ordered it."""
    return [(ended, _did(ended, step)) for ended, step in _timed(line)]


def of_island(line: Steps, island: CycleId) -> Stretch:
    """Return what one island did by itself, without exchanges or waiting for others."""
    timed = [pair for pair in _measured(line) if pair[1].trained_s.get(island, 0.0) > 0]
    return Stretch(
        sum(dict(zip(step.islands, step.tokens, strict=True)).get(island, 0) for _, step in timed),
        sum(ended.steps for ended, _ in timed),
        sum(step.trained_s[island] for _, step in timed),
    )


def _did(ended: OuterStepTaken, step: OuterStepTaken) -> Stretch:
    """Return what was done in a round, by the steps that ordered it and that ended it."""
    return Stretch(sum(step.tokens), ended.steps, step.elapsed_s)


def _timed(line: Steps) -> Sequence[tuple[OuterStepTaken, OuterStepTaken]]:
    """Return those whose time a leader has seen from its beginning to its end."""
    return [pair for pair in _measured(line) if pair[1].elapsed_s > 0]


def _measured(line: Steps) -> Sequence[tuple[OuterStepTaken, OuterStepTaken]]:
    """Return the steps that tell how fast islands are, each after the one whose round it ends."""
    steps = [*line.values()]
    ended = [(steps[n - step.lag], step) for n, step in enumerate(steps) if n >= step.lag]
    return ended[steps[0].lag :] if steps else []
