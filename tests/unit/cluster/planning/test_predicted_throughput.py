"""What a round was predicted, beside what it came to, as the ledger tells."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from jupiterd.cluster.facts.attempt_facts import AttemptClosed
from jupiterd.cluster.ledger.cycle_state import CycleFact, CycleState
from jupiterd.cluster.ledger.lww_registers import fact_hash
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.planning import outer_throughput
from jupiterd.cluster.planning.attempt_throughput import LEAST_S
from jupiterd.cluster.planning.predicted_throughput import ThroughputComparison, compared
from jupiterd.ids import ArtifactId, CycleId
from tests.support.cluster.building import CYCLE, NODES, checkpoint, commanded, opened, outer_step
from tests.support.cluster.building import training as asked

ENDED = commanded("stopped", 1)


def folded(*facts: CycleFact) -> CycleState:
    state = State()
    for term, fact in enumerate((asked(), *facts), 1):
        state.apply(fact, (term, NODES[0], "u", 1))
    return state.cycles[CYCLE]


def attempt(
    number: int, predicted: float, tokens: int, elapsed_s: float, after: str = ""
) -> Sequence[CycleFact]:
    """An attempt that goes on from a checkpoint and brings the line to so many tokens."""
    begun = replace(opened(number), predicted_tokens_per_s=predicted, from_checkpoint=after)
    made = replace(checkpoint(f"k{number}", after, tokens=tokens), attempt=number)
    return begun, made, AttemptClosed(CYCLE, number, "somebody joins", elapsed_s)


def test_of_several_gangs_each_prediction_counts_as_long_as_its_gang_trained() -> None:
    one, two = attempt(1, 1_000.0, 90_000, 100.0), attempt(2, 2_000.0, 690_000, 300.0, after="k1")
    assert compared(folded(*one, *two, ENDED)) == ThroughputComparison(1_750.0, 690_000 / 400)


def test_attempts_of_which_nothing_was_predicted_are_left_out_where_there_are_others() -> None:
    one, two = attempt(1, 0.0, 90_000, 100.0), attempt(2, 2_000.0, 690_000, 300.0, after="k1")
    assert compared(folded(*one, *two, ENDED)) == ThroughputComparison(2_000.0, 600_000 / 300)
    assert compared(folded(*one, ENDED)) == ThroughputComparison(None, 900.0)


def test_what_ended_before_it_was_measured_still_tells_what_was_predicted_last() -> None:
    one, two = attempt(1, 1_000.0, 900, 1.0), attempt(2, 2_000.0, 9_000, LEAST_S - 1, after="k1")
    assert compared(folded(*one, *two, ENDED)) == ThroughputComparison(2_000.0, None)
    assert compared(folded(ENDED)) == ThroughputComparison(None, None)


def test_nothing_is_compared_while_a_round_is_trained() -> None:
    before = attempt(1, 1_000.0, 90_000, 100.0)
    assert compared(folded(*before)) == ThroughputComparison(None, None)
    assert compared(folded(*before, ENDED)).measured == 900.0


def islands(*rounds: tuple[float, float]) -> list[CycleFact]:
    """Outer steps of 4,000 tokens: what was predicted of the round after, and how long it took."""
    last = replace(outer_step(0), islands=(), pseudo_gradients=(), tokens=())
    found = [last]
    one, other = CycleId("1" * 16), CycleId("2" * 16)
    for number, (predicted, elapsed_s) in enumerate(rounds, 1):
        found[-1] = replace(found[-1], predicted_tokens_per_s=predicted)
        last = replace(
            outer_step(number, fact_hash(found[-1])),
            islands=(one, other), pseudo_gradients=(ArtifactId("5" * 64), ArtifactId("6" * 64)),
            tokens=(3_000, 1_000), first_step=30 * number, elapsed_s=elapsed_s,
        )  # fmt: skip
        found.append(last)
    return [*found]


def test_islands_are_measured_by_their_outer_steps_as_what_corrects_the_planner_is() -> None:
    run = folded(*islands((500.0, 99.0), (500.0, 10.0), (800.0, 30.0)), ENDED)
    found = compared(run)
    assert found.predicted == pytest.approx((500 * 10 + 800 * 30) / 40)
    assert found.measured == outer_throughput.of_all(run.outer_branch()).tokens_per_s == 8_000 / 40


def test_islands_that_ended_after_their_first_round_were_predicted_and_not_measured() -> None:
    assert compared(folded(*islands((500.0, 99.0)), ENDED)) == ThroughputComparison(500.0, None)
