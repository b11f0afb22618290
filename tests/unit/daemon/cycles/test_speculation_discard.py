"""What was written ahead, where somebody else is to write."""

from jupiterd.cluster.facts.facts import WorkCompleted
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cycle.generation.promotion import ActiveGenerators
from jupiterd.daemon.cycles.speculation_discard import anew, writes_otherwise
from tests.support.cluster.building import CYCLE, NODES, started

STUDENT, OTHER = "1" * 64, "2" * 64
IN_FULL = ActiveGenerators({"faq": (STUDENT,)}, entered=(STUDENT,))


def folded(*facts: object) -> CycleState:
    state = CycleState()
    for term, fact in enumerate((started(3), *facts), 1):
        state.apply(fact, (term, NODES[0], "u", 1))
    return state


def test_a_promotion_leaves_it_and_a_rollback_does_not():
    on_trial = ActiveGenerators({"faq": (STUDENT,)}, entered=(STUDENT,), canary=OTHER)
    assert not writes_otherwise(["faq"], IN_FULL, on_trial, None)
    assert writes_otherwise(["faq"], IN_FULL, IN_FULL.without(STUDENT), None)


def test_what_counts_no_more_is_written_again_under_other_ids():
    written = WorkCompleted(CYCLE, 3, "generate", "r3/generate/0", NODES[0], {"samples": "a" * 64})
    cycle = folded(written)
    assert anew(folded(), CYCLE, 3) == []
    (fact,) = anew(cycle, CYCLE, 3)
    assert (3, "r3/generate/0") in cycle.completed
    cycle.apply(fact, (9, NODES[0], "u", 1))
    assert (3, "r3/generate/0") not in cycle.completed
    assert cycle.steering.recorded_id(3, "generate", "r3/generate/0") == "r3/generate/0~1"
