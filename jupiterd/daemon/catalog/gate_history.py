"""The models that a cycle's gate has judged, what it said of them, and what looking has cost.

Owns finding that among a cycle's facts. Doesn't judge.
"""

from collections import Counter
from operator import attrgetter

from jupiterd.cluster.facts.facts import CheckpointCommitted, WorkCompleted
from jupiterd.cluster.facts.steering import StudentSteered
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.lww_registers import Order
from jupiterd.cluster.ledger.phase_steering import AGAIN
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.gate.decision import Decision
from jupiterd.cycle.phases.counting_verdict import verdict_item
from jupiterd.cycle.phases.view import item_id
from jupiterd.ids import short


def judged(cycle: CycleState, round_number: int, candidate: str) -> WorkCompleted | None:
    """Return the gate's work on a round's candidate; None where it hasn't judged it."""
    gated = cycle.completed_in(round_number, Phase.GATE)
    return gated.get(verdict_item(round_number, candidate, gated))


def best_student(cycle: CycleState) -> str:
    """Return the last candidate of the line that was shown to be better than the one before it.

    It stays the one to beat until another one is: students that are each a little worse must not
    lower the bar. Promoted or not plays no part, but people may lower it: whom they have rolled
    back isn't the one to beat. Empty where there is none yet, or none any more.
    """
    taken_back = _taken_back(cycle)
    for done in reversed(cycle.rounds):
        if done.final_checkpoint in taken_back:
            continue
        found = judged(cycle, done.round, done.final_checkpoint)
        # Of a verdict that doesn't say, promotion does; who was promoted by a judge wasn't shown.
        is_promoted = done.verdict == Decision.PROMOTE
        if is_promoted if found is None else found.summary.get("better", is_promoted):
            return done.final_checkpoint
    return ""


def _taken_back(cycle: CycleState) -> set[str]:
    """Return the students that people have rolled back, and not promoted again.

    Of what they said after the round before, only what came before the round's first checkpoint
    counts: whom its candidate must beat doesn't change while that is being scored.
    """
    over = cycle.rounds_committed
    said = [fact for number in range(1, over + 1) for fact in cycle.steered_after(number)]
    if not said:
        return set()
    begun, orders = _begun_at(cycle, over + 1), _orders(cycle)
    found: dict[str, bool] = {}
    for fact in sorted(said, key=attrgetter("after_round", "edit")):
        if fact.after_round < over or begun is None or orders[fact] < begun:
            found[fact.student] = fact.is_promoted
    return {student for student, is_promoted in found.items() if not is_promoted}


def _begun_at(cycle: CycleState, number: int) -> Order | None:
    """Return the place in the ledger where a round's training has begun; None: it hasn't."""
    made = ((at, fact) for at, fact in cycle.placed() if isinstance(fact, CheckpointCommitted))
    return min((at for at, fact in made if fact.round == number), default=None)


def _orders(cycle: CycleState) -> dict[StudentSteered, Order]:
    return {fact: at for at, fact in cycle.placed() if isinstance(fact, StudentSteered)}


def looks_before(cycle: CycleState, round_number: int, candidate: str) -> int:
    """Return how many looks at the held-out text were spent before that at a round's candidate.

    Each spends some of alpha, whether its line counts or not, whether its round was closed or not;
    so does each time that the gate has decided again on the same candidate.
    """
    looks = Counter[tuple[int, str]]()
    first = item_id(round_number, Phase.GATE, 0, candidate)
    own = cycle.steering.recorded_id(round_number, str(Phase.GATE), first)
    for number, recorded in cycle.recorded:
        begins, _, judged_model = recorded.partition(AGAIN)[0].rpartition("/")
        if begins == item_id(number, Phase.GATE, 0) and recorded != own:
            looks[number, judged_model] += 1
    for number, artifact in cycle.judged:
        if artifact != candidate:  # an older ledger may have the verdict alone
            looks[number, short(artifact)] = max(looks[number, short(artifact)], 1)
    return looks.total()
