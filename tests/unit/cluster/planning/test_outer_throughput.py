"""How fast islands were, as their outer steps tell."""

from dataclasses import replace

import pytest

from jupiterd.cluster.facts.facts import OuterStepTaken
from jupiterd.cluster.planning.outer_throughput import of_all, of_island
from jupiterd.ids import ArtifactId, CycleId
from tests.support.cluster.building import outer_step

ONE, OTHER = CycleId("1" * 16), CycleId("2" * 16)
SENT = (ArtifactId("5" * 64), ArtifactId("6" * 64))


def line(*rounds: tuple[float, float, float]) -> dict[str, OuterStepTaken]:
    """Rounds of 30 steps; of each how long it took, and how long either island trained in it."""
    steps = {"0": replace(outer_step(0), islands=(), pseudo_gradients=(), tokens=())}
    for number, (elapsed_s, one_s, other_s) in enumerate(rounds, 1):
        steps[str(number)] = replace(
            outer_step(number, str(number - 1)),
            islands=(ONE, OTHER), pseudo_gradients=SENT, tokens=(3_000, 1_000),
            first_step=30 * number, elapsed_s=elapsed_s, trained_s={ONE: one_s, OTHER: other_s},
        )  # fmt: skip
    return steps


def test_all_islands_are_as_fast_as_their_rounds_are_and_one_is_as_its_own_steps_are() -> None:
    taken = line((90.0, 80.0, 80.0), (12.0, 10.0, 8.0), (8.0, 6.0, 8.0))
    assert of_all(taken).tokens_per_s == 8_000 / 20
    assert of_all(taken, newest=1).tokens_per_s == 4_000 / 8
    one = of_island(taken, ONE)
    assert (one.tokens, one.steps, one.elapsed_s) == (6_000, 60, 16.0)
    assert of_island(taken, OTHER).tokens_per_s == pytest.approx(2_000 / 16)


def test_a_round_that_no_leader_saw_both_ends_of_tells_nothing_of_all_and_the_first_one_never_does(
) -> None:  # fmt: skip
    taken = line((90.0, 80.0, 80.0), (0.0, 10.0, 8.0))
    assert of_all(taken).tokens_per_s == 0.0
    assert of_island(taken, ONE).tokens == 3_000
    assert of_all(line((90.0, 80.0, 80.0))).tokens == 0
    assert of_all({}).tokens_per_s == 0.0


def test_an_island_whose_way_did_not_count_did_nothing_in_that_round() -> None:
    taken = line((9.0, 9.0, 9.0), (9.0, 9.0, 9.0))
    alone = {**taken, "2": replace(taken["2"], islands=(ONE,), pseudo_gradients=SENT[:1],
                                   tokens=(3_000,),
                                   trained_s={ONE: 9.0})}  # fmt: skip
    assert of_island(alone, OTHER).tokens == 0
    assert of_all(alone).tokens == 3_000
