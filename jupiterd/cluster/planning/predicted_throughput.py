"""What a round was predicted to train on in a second, and what it came to.

Owns that comparison, for people. Pure. Both are in the ledger: predictions stand in the facts that
begin an attempt, or a round of islands, and what was done is what the next predictions are made of
and corrected by (`attempt_throughput`, `outer_throughput`). Doesn't know how anything is predicted.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from jupiterd.cluster.facts.attempt_facts import AttemptOpened
from jupiterd.cluster.facts.facts import OuterStepTaken
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.island_runs import is_trained_in
from jupiterd.cluster.planning import attempt_throughput, outer_throughput
from jupiterd.cluster.planning.outer_throughput import Stretch

PREDICTED = "predicted_tokens_per_s"
"""The reading that carries a prediction."""

Part = tuple[float, Stretch]
"""What was predicted of something, 0 where nobody could know, and what it did."""


@dataclass(frozen=True)
class ThroughputComparison:
    """Tokens per second of a round; None where nobody knows."""

    predicted: float | None = None
    measured: float | None = None


def newest(begun: Sequence[AttemptOpened | OuterStepTaken]) -> float | None:
    """Return what was predicted last of attempts, or of islands' rounds, in their order."""
    found = (fact.predicted_tokens_per_s for fact in reversed(begun))
    return next((rate for rate in found if rate), None)


def compared(run: CycleState, number: int = 1) -> ThroughputComparison:
    """Return what a round that is over was predicted, and what it did; nothing of one that runs.

    Of several attempts, or rounds of islands, each counts as long as it took; those of which
    nothing was predicted don't, where there are others.
    """
    if not (run.has_nothing_to_do or is_trained_in(run, number)):
        return ThroughputComparison()
    parts = [part for part in _parts(run, number) if part[1].tokens > 0]
    counted = [part for part in parts if part[0] > 0] or parts
    elapsed_s = sum(did.elapsed_s for _, did in counted)
    if not elapsed_s:
        return ThroughputComparison(newest(_begun(run, number)))
    predicted = sum(rate * did.elapsed_s for rate, did in counted) / elapsed_s
    return ThroughputComparison(
        predicted or None, sum(did.tokens for _, did in counted) / elapsed_s
    )


def _parts(run: CycleState, number: int) -> Sequence[Part]:
    if line := run.outer_branch(number):
        return [(begun.predicted_tokens_per_s, did) for begun, did in outer_throughput.rounds(line)]
    return [
        (opened.predicted_tokens_per_s, attempt_throughput.stretch(run, opened, closed))
        for opened, closed in attempt_throughput.ended(run)
        if opened.round == number
    ]


def _begun(run: CycleState, number: int) -> Sequence[AttemptOpened | OuterStepTaken]:
    if line := run.outer_branch(number):
        return [*line.values()]
    return [fact for _, fact in sorted(run.attempts_opened.items()) if fact.round == number]
