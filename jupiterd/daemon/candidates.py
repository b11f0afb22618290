"""The models that a cycle's gate has judged, and what it said of them.

Owns finding them among a cycle's facts. Doesn't judge.
"""

from jupiterd.cluster.cycle_state import CycleState
from jupiterd.cluster.facts import WorkCompleted
from jupiterd.cycle.gate.decision import Decision
from jupiterd.cycle.phases.looks import verdict_item


def judged(cycle: CycleState, round_number: int, candidate: str) -> WorkCompleted | None:
    """Return the gate's work on a round's candidate; None where it hasn't judged it."""
    items = {item for number, item in cycle.completed if number == round_number}
    return cycle.completed.get((round_number, verdict_item(round_number, candidate, items)))


def last_student(cycle: CycleState) -> str:
    """Return the last candidate of the line that was shown to be better than the one before it.

    It stays the one to beat until another one is: students that are each a little worse must not
    lower the bar. Promoted or not plays no part. Empty where there is none yet.
    """
    for done in reversed(cycle.rounds):
        found = judged(cycle, done.round, done.parent)
        was_better = found is not None and bool(found.summary.get("better"))
        if was_better or done.verdict == Decision.PROMOTE:
            return done.parent
    return ""
