import pytest

from jupiterd.cluster.facts.attempt_facts import AttemptClosed
from jupiterd.cluster.facts.facts import CycleFailed, VerdictReached
from jupiterd.cluster.ledger.cycle_state import CycleFact, CycleState
from jupiterd.cluster.ledger.progress_tree import weights_of
from jupiterd.ids import ArtifactId
from tests.support.cluster.building import (
    CYCLE,
    NODES,
    adopted,
    checkpoint,
    closed,
    commanded,
    opened,
    paused,
    pinned,
    round_over,
    started,
    suspended,
    work_done,
)


def cycle_of(*facts: CycleFact) -> CycleState:
    """Each fact a term later than the one before."""
    cycle = CycleState()
    for term, fact in enumerate(facts, 1):
        cycle.apply(fact, (term, NODES[0], "u", 1))
    return cycle


def test_a_cycle_runs_until_its_rounds_are_committed() -> None:
    cycle = cycle_of(started(rounds=1), checkpoint("k1", is_final=True))
    assert not cycle.has_nothing_to_do
    cycle.apply(round_over("k1", promoted="m1", verdict="PROMOTE"), (9, NODES[0], "u", 1))
    assert cycle.has_nothing_to_do
    assert cycle.rounds_committed == 1
    assert cycle.generator == "m1"


def test_a_failed_cycle_is_finished() -> None:
    cycle = cycle_of(started(), CycleFailed(CYCLE, "empty-source", "nothing there", "look again"))
    assert cycle.has_nothing_to_do


def test_the_greatest_edit_decides_whether_a_cycle_runs() -> None:
    cycle = cycle_of(started(), commanded("running", 2, "go"), commanded("stopped", 1))
    assert (cycle.wanted, cycle.wanted_edit) == ("running", 2)
    assert not cycle.has_nothing_to_do
    cycle.apply(commanded("stopped", 3), (1, NODES[0], "u", 2))
    assert cycle.has_nothing_to_do


def test_a_paused_cycle_has_nothing_to_do_and_still_goes_on() -> None:
    cycle = cycle_of(started(), paused(1, NODES[1]))
    assert (cycle.has_nothing_to_do, cycle.goes_on) == (True, True)
    assert cycle.paused == paused(1, NODES[1])
    cycle.apply(commanded("running", 2), (3, NODES[0], "u", 1))
    assert (cycle.has_nothing_to_do, cycle.goes_on, cycle.paused) == (False, True, None)
    cycle.apply(commanded("stopped", 3), (4, NODES[0], "u", 1))
    assert (cycle.has_nothing_to_do, cycle.goes_on, cycle.paused) == (True, False, None)


@pytest.mark.parametrize("first", [True, False])
def test_of_a_pause_and_a_resumption_apart_the_later_in_the_order_holds(first: bool) -> None:
    """Two groups that had the same history each give the next command."""
    pause, resume = (5, NODES[0], "u", 1), (5, NODES[1], "u", 1)
    told = [(paused(3), pause), (commanded("running", 3), resume)]
    cycle = cycle_of(started(), paused(1), commanded("running", 2))
    for fact, order in told if first else reversed(told):
        cycle.apply(fact, order)
    assert cycle.paused is None
    assert not cycle.has_nothing_to_do


def test_what_is_over_is_not_paused() -> None:
    failed = CycleFailed(CYCLE, "failed", "out of ideas", "")
    assert cycle_of(started(), paused(1), failed).paused is None
    done = cycle_of(started(1), paused(1), checkpoint("k1", is_final=True), round_over("k1"))
    assert (done.paused, done.goes_on) == (None, False)


def test_without_a_command_a_cycle_is_to_run() -> None:
    cycle = cycle_of(checkpoint("k1"))
    assert (cycle.wanted, cycle.wanted_edit) == ("running", 0)
    assert cycle.started is None
    assert not cycle.has_nothing_to_do
    assert cycle.generator == ""


def test_of_two_completions_of_one_item_the_first_in_the_order_counts() -> None:
    cycle = cycle_of(work_done("i", NODES[1]), work_done("i", NODES[0]), work_done("j"))
    assert cycle.completed[1, "i"].node == NODES[1]
    assert set(cycle.completed) == {(1, "i"), (1, "j")}


def test_the_open_attempt_is_the_latest_that_nobody_closed() -> None:
    cycle = cycle_of(opened(1), opened(2), opened(3), closed(3))
    assert cycle.open_attempts[-1] == opened(2)
    assert cycle.open_attempts == (opened(1), opened(2))
    assert cycle.next_attempt == 4
    assert set(cycle.attempts_opened) == {1, 2, 3}
    assert set(cycle.attempts_closed) == {3}


def test_a_close_that_comes_before_its_attempt_still_closes_it() -> None:
    cycle = cycle_of(closed(1), opened(1))
    assert cycle.open_attempts == ()
    assert cycle_of().next_attempt == 1


def test_an_attempt_stays_open_when_a_leader_that_was_replaced_closes_it() -> None:
    cycle = cycle_of(opened(1), closed(1), adopted(1))
    assert cycle.open_attempts == (opened(1),)
    assert dict(cycle.attempts_adopted) == {1: adopted(1)}
    assert cycle.next_attempt == 2


def test_whoever_adopted_an_attempt_closes_it() -> None:
    late = AttemptClosed(CYCLE, 1, "finished")
    cycle = cycle_of(opened(1), closed(1), adopted(1), late)
    assert cycle.open_attempts == ()
    assert cycle.attempts_closed[1] == late


def test_the_last_checkpoint_of_a_round_is_taken_from_the_canonical_line() -> None:
    cycle = cycle_of(
        checkpoint("k1"),
        checkpoint("k2", "k1", tokens=200),
        checkpoint("x2", "k1", tokens=150),
        round_over("k2"),
        checkpoint("k3", "k2", 2, tokens=300),
    )
    first, second = cycle.last_checkpoint(1), cycle.last_checkpoint(2)
    assert first is not None
    assert first.artifact == "k2"
    assert second is not None
    assert second.artifact == "k3"
    assert cycle.last_checkpoint(3) is None


def test_a_round_on_a_branch_promotes_nothing() -> None:
    cycle = cycle_of(
        checkpoint("k1"),
        round_over("k1", promoted="kept"),
        checkpoint("k2", "k1", 2),
        round_over("k2", 2, promoted="newest"),
        checkpoint("x1", tokens=900),
        round_over("x1", promoted="other"),
    )
    assert cycle.generator == "newest"
    assert [weights_of(leaf) for leaf in cycle.other_leaves()] == ["x1"]


FORKED: tuple[CycleFact, ...] = (
    started(rounds=2),
    checkpoint("k1"),
    round_over("k1", promoted="k1", verdict="PROMOTE"),
    checkpoint("k2", "k1", 2),
    round_over("k2", 2, promoted="k2", verdict="PROMOTE"),
    checkpoint("x1", tokens=900),
    round_over("x1", promoted="x1", verdict="PROMOTE"),
)


def test_all_that_follows_the_line_follows_a_pin() -> None:
    cycle = cycle_of(*FORKED)
    assert cycle.has_nothing_to_do
    cycle.apply(pinned("x1"), (99, NODES[0], "u", 1))
    assert (cycle.generator, cycle.rounds_committed, cycle.has_nothing_to_do) == ("x1", 1, False)
    assert cycle.last_checkpoint(2) is None
    assert cycle.ends_at(1, "x1") is False
    cycle.apply(checkpoint("x2", "x1", 2), (100, NODES[0], "u", 1))
    assert cycle.ends_at(2, "x2")
    assert cycle.generator == "x1"


def test_the_greatest_edit_decides_what_is_pinned() -> None:
    cycle = cycle_of(*FORKED, pinned("", 3), pinned("x1", 2))
    assert (cycle.pinned, cycle.pin_edit, cycle.generator) == ("", 3, "k2")


def test_a_pin_may_come_long_before_its_leaf() -> None:
    cycle = cycle_of(pinned("x1"), *FORKED[:5])
    assert (cycle.pinned, cycle.generator) == ("x1", "k2")
    for index, fact in enumerate(FORKED[5:], 1):
        cycle.apply(fact, (9, NODES[0], "u", index))
    assert cycle.generator == "x1"


def test_a_parked_line_counts_again_once_a_later_edit_says_so() -> None:
    cycle = cycle_of(*FORKED, suspended("k2"))
    assert (cycle.rounds_committed, cycle.suspended, cycle.suspension_edit("k2")) == (1, {"k2"}, 1)
    cycle.apply(suspended("k2", 2, is_suspended=False), (99, NODES[0], "u", 1))
    assert (cycle.rounds_committed, cycle.suspended, cycle.suspension_edit("k2")) == (
        2,
        frozenset(),
        2,
    )
    assert (
        cycle_of(suspended("k2", 2, is_suspended=False), suspended("k2"), *FORKED).suspended
        == frozenset()
    )


def test_what_was_said_of_a_line_stands_behind_the_attempts_before_it() -> None:
    cycle = cycle_of(opened(1), suspended("k2"), opened(2), suspended("x1"))
    assert [(attempt, fact.leaf) for attempt, fact in cycle.parkings()] == [(1, "k2"), (2, "x1")]


def test_only_verdicts_on_the_line_are_in_force_and_all_are_known() -> None:
    def verdict(candidate: str) -> VerdictReached:
        artifact = ArtifactId("4" * 64)
        return VerdictReached(CYCLE, 1, "PROMOTE", "", 2.5, artifact, ArtifactId(candidate), "")

    cycle = cycle_of(*FORKED, verdict("x1"), verdict("k1"))
    assert [found.candidate for found in cycle.verdicts.values()] == ["k1"]
    assert cycle.judged == {(1, "x1"), (1, "k1")}
    cycle.apply(pinned("x1"), (99, NODES[0], "u", 1))
    assert [found.candidate for found in cycle.verdicts.values()] == ["x1"]
