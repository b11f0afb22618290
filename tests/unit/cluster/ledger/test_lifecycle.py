"""How a cycle ends and goes on: whatever the order its facts come in, the last one counts."""

from itertools import permutations

import pytest

from jupiterd.cluster.facts.facts import ClusterFounded, CycleFailed, Fact
from jupiterd.cluster.facts.lifecycle_facts import CycleExtended, CycleRevived, FailureDismissed
from jupiterd.cluster.ledger.cycle_state import CycleFact, CycleState
from jupiterd.cluster.ledger.entry import EntryWriter
from jupiterd.cluster.ledger.island_runs import revived_with
from jupiterd.cluster.ledger.ledger import Ledger
from jupiterd.cluster.membership.cluster_merge import owed
from jupiterd.ids import ClusterId
from tests.support.cluster.building import (
    CYCLE,
    NODES,
    admitted,
    checkpoint,
    founded_ledger,
    make_entry,
    round_over,
    started,
)

FAILED = CycleFailed(CYCLE, "empty-source", "nothing there", "look again")
AGAIN = CycleFailed(CYCLE, "work-failed", "it broke", "mend it")
REVIVED, SEEN = CycleRevived(CYCLE), FailureDismissed(CYCLE)


def cycles_of(*facts: CycleFact) -> list[CycleState]:
    """Return the state of these facts, each a term later, as they come in every order."""
    placed = [(fact, (term, NODES[0], "u", 1)) for term, fact in enumerate(facts, 1)]
    found: list[CycleState] = []
    for order in permutations(placed):
        cycle = CycleState()
        for fact, at in order:
            cycle.apply(fact, at)
        found.append(cycle)
    return found


@pytest.mark.parametrize(
    ("facts", "why", "is_seen"),
    [
        ((FAILED,), FAILED, False),
        ((FAILED, SEEN), FAILED, True),
        ((FAILED, REVIVED), None, False),
        ((FAILED, SEEN, REVIVED), None, True),
        ((FAILED, SEEN, REVIVED, AGAIN), AGAIN, False),
        ((FAILED, REVIVED, AGAIN, SEEN), AGAIN, True),
        ((FAILED, REVIVED, AGAIN, REVIVED), None, False),
    ],
)
def test_the_last_failure_counts_unless_somebody_went_on_from_it(
    facts: tuple[CycleFact, ...], why: CycleFailed | None, is_seen: bool
) -> None:
    for cycle in cycles_of(*facts):
        assert (cycle.failed, cycle.lifecycle.is_dismissed) == (why, is_seen)
        assert cycle.digest() == cycles_of(*facts)[0].digest()


def test_a_cycle_has_the_rounds_that_it_was_given_last_and_never_fewer_than_at_first() -> None:
    one_round = (started(1), checkpoint("k1", is_final=True), round_over("k1"))
    assert all(cycle.has_nothing_to_do for cycle in cycles_of(*one_round))
    for cycle in cycles_of(*one_round, CycleExtended(CYCLE, 3, 1)):
        assert (cycle.has_nothing_to_do, cycle.rounds_wanted) == (False, 3)
    for cycle in cycles_of(started(2), CycleExtended(CYCLE, 5, 2), CycleExtended(CYCLE, 3, 1)):
        assert cycle.rounds_wanted == 5
    for cycle in cycles_of(started(4), CycleExtended(CYCLE, 3, 1)):
        assert cycle.rounds_wanted == 4


def test_what_did_not_fail_is_not_revived() -> None:
    (cycle,) = cycles_of(started())
    assert revived_with({CYCLE: cycle}, CYCLE) == []


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ((FAILED,), FAILED),
        ((FAILED, REVIVED), None),
        ((FAILED, REVIVED, AGAIN), AGAIN),
        ((FAILED, SEEN), FAILED),
    ],
)
def test_a_cluster_that_takes_in_another_agrees_on_what_failed_there(
    facts: tuple[Fact, ...], why: CycleFailed | None
) -> None:
    here = founded_ledger(EntryWriter(NODES[0], "e" * 32))
    there = Ledger(ClusterId("1" * 32))
    writer = EntryWriter(NODES[1], "f" * 32)
    first = [ClusterFounded("attic"), admitted(writer.node)]
    there.add(make_entry(there, 1, writer, first, there.cluster))
    for fact in (started(), *facts):
        there.add(make_entry(there, 1, writer, [fact], there.cluster))
    brought = owed(here, there)
    here.add(make_entry(here, 1, EntryWriter(NODES[0], "e" * 32), brought))
    own = here.state.cycles[CYCLE]
    assert own.failed == why == there.state.cycles[CYCLE].failed
    assert (own.failed and own.lifecycle.is_dismissed) == (why and SEEN in facts)
    assert owed(here, there) == []
