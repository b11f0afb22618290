"""What may go of the checkpoints, and what never."""

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cluster.artifacts.retention import old_pseudo_gradients, unneeded
from jupiterd.cluster.facts.facts import CheckpointCommitted, CycleFailed, OuterStepTaken
from jupiterd.cluster.ledger.cycle_state import CycleFact, CycleState
from jupiterd.cluster.ledger.lww_registers import fact_hash
from jupiterd.ids import ArtifactId, CycleId
from tests.support.cluster.building import (
    CYCLE,
    NODES,
    checkpoint,
    closed,
    commanded,
    judged,
    opened,
    outer_step,
    pinned,
    round_over,
    started,
    suspended,
    training,
    work_done,
)

ISLAND = CycleId("1" * 16)


def run_of(*facts: CycleFact) -> CycleState:
    cycle = CycleState()
    for index, fact in enumerate(facts, 1):
        cycle.apply(fact, (1, NODES[0], "u", index))
    return cycle


def line(length: int) -> list[CheckpointCommitted]:
    names = ["", *(f"k{number}" for number in range(1, length + 1))]
    return [
        checkpoint(name, parent, tokens=100 * number)
        for number, (parent, name) in enumerate(pairwise(names), 1)
    ]


def test_the_last_three_and_every_tenth_stay() -> None:
    left = {f"k{number}" for number in range(1, 26)} - unneeded([run_of(*line(25))])
    assert left == {"k10", "k20", "k23", "k24", "k25"}


def test_whatever_is_referred_to_stays() -> None:
    facts = [
        *line(20),
        replace(opened(1), from_checkpoint="k1"),
        replace(opened(2), from_checkpoint="k2"),
        closed(2),
        pinned("k3"),
        suspended("k4"),
        judged("HOLD", "k5"),
        replace(judged("HOLD", "k20"), generator_in_force="k6"),
        round_over("k20", promoted="k7"),
        replace(work_done("x"), outputs={"samples": ArtifactId("k8")}),
    ]
    gone = unneeded([run_of(*facts)])
    assert gone == {"k2", "k9", *(f"k{number}" for number in range(11, 18))}


def test_what_another_run_needs_stays() -> None:
    fine_tuned = run_of(checkpoint("k5"))
    assert "k5" in unneeded([run_of(*line(20))])
    assert "k5" not in unneeded([run_of(*line(20)), fine_tuned])


def test_what_has_no_place_in_the_tree_stays() -> None:
    assert unneeded([run_of(*line(20)[5:])]) == frozenset()


@st.composite
def trees(draw: st.DrawFn) -> list[CycleFact]:
    """Draw checkpoints that hang below earlier ones, some of them final."""
    facts: list[CycleFact] = []
    for number in range(draw(st.integers(1, 40))):
        parent = draw(st.sampled_from(range(max(0, number - 4), number + 1)))
        name = f"k{parent}" if parent else ""
        made = checkpoint(f"k{number + 1}", name, tokens=100 * number + 1)
        facts.append(replace(made, is_final=draw(st.integers(0, 9)) == 0))
    return draw(st.permutations(facts))


@given(trees())
def test_nothing_goes_that_a_line_ends_with(facts: list[CycleFact]) -> None:
    cycle = run_of(*facts)
    gone = unneeded([cycle])
    parents = {
        fact.artifact: fact.parent for fact in facts if isinstance(fact, CheckpointCommitted)
    }
    final = {
        fact.artifact for fact in facts if isinstance(fact, CheckpointCommitted) and fact.is_final
    }
    ends: set[str] = {leaf.checkpoint.artifact for leaf in cycle.leaves()}
    ends |= parents.keys() - set(parents.values())
    for _ in range(2):
        ends |= {parents[ArtifactId(end)] for end in ends if end}
    assert gone.isdisjoint(ends | final)
    assert gone <= parents.keys()
    assert CYCLE not in gone


def outer_branch(count: int, name: str = "w") -> list[OuterStepTaken]:
    """So many outer steps below the beginning, with a way each."""
    line = [replace(outer_step(0), pseudo_gradients=())]
    for number in range(1, count + 1):
        taken = outer_step(number, fact_hash(line[-1]), 100 * number)
        line.append(replace(taken, pseudo_gradients=(ArtifactId(f"{name}{number}"),)))
    return line


def test_the_ways_of_old_outer_steps_may_go() -> None:
    going_on = [run_of(*outer_branch(20))]
    assert old_pseudo_gradients(going_on) == {"w1", "w2", "w3", "w4"}
    beginning, first = outer_branch(1)
    young = run_of(beginning, replace(first, pseudo_gradients=(ArtifactId("w3"),)))
    assert old_pseudo_gradients([*going_on, young]) == {"w1", "w2", "w4"}, "another run needs it"


def test_of_a_run_that_is_over_no_way_is_kept_and_of_one_that_was_stopped_the_last_ones() -> None:
    last = [replace(checkpoint("k", is_final=True)), round_over("k")]
    assert old_pseudo_gradients([run_of(*outer_branch(3), *last)]) == {"w1", "w2", "w3"}
    drawn = replace(work_done("r1/train/0"), phase="train", outputs={"weights": ArtifactId("d")})
    begun = [training(), drawn, *outer_branch(1)]
    assert old_pseudo_gradients([run_of(*begun)]) == frozenset()
    assert old_pseudo_gradients([run_of(*begun, *last)]) == {"w1", "d"}
    assert old_pseudo_gradients([run_of(*begun, *last), run_of(*begun)]) == frozenset()
    failed = CycleFailed(CYCLE, "work-failed", "all islands have failed", "")
    assert old_pseudo_gradients([run_of(*outer_branch(3), failed)]) == {"w1", "w2", "w3"}
    assert old_pseudo_gradients([run_of(*outer_branch(3), commanded("stopped", 1))]) == frozenset()


def test_of_islands_whose_round_is_over_nothing_stays_but_its_model() -> None:
    settings = {"start_from": "k1"}
    island = replace(
        training("letters/1"), cycle=ISLAND, parent=CYCLE, parent_round=2, settings=settings
    )
    own = [
        replace(checkpoint(name, parent, tokens=number), cycle=ISLAND)
        for number, (parent, name) in enumerate(pairwise(["", "s1", "s2", "k2"]))
    ]
    done = replace(round_over("k2"), cycle=ISLAND)
    first = [started(), checkpoint("k1", is_final=True), round_over("k1")]
    second = [checkpoint("k2", "k1", 2, tokens=200, is_final=True), round_over("k2", 2)]
    part = run_of(island, *own, done)
    assert unneeded([run_of(*first), part]) == set()
    assert unneeded([run_of(*first, *second), part]) == {"s1", "s2"}
    other_line = run_of(
        *first, *second, checkpoint("x1", tokens=101, is_final=True), round_over("x1"), pinned("x1")
    )
    assert unneeded([other_line, part]) == set(), "whose line may count again"
