"""A device that runs out of memory takes fewer sequences at a time, whoever leads."""

import pytest

from jupiterd.cluster.facts.attempt_facts import AttemptOpened
from jupiterd.daemon.gangs.micro_batch_sizes import MicroBatchSizes
from jupiterd.errors import ModelTooLargeError
from jupiterd.ids import CycleId, NodeId

A, B = NodeId("a"), NodeId("b")


def opened(attempt: int, round_number: int, *sizes: int) -> AttemptOpened:
    return AttemptOpened(
        CycleId("c"), round_number, attempt, (A, B), "torch/gloo", "", 0, micro_batches=sizes
    )


def test_only_the_rank_whose_memory_ran_out_takes_fewer() -> None:
    memory = MicroBatchSizes(8)
    assert memory.of((A, B)) == (8, 8)
    assert memory.halve(B, "node-2") == 4
    assert memory.of((A, B)) == (8, 4)


def test_one_sequence_at_a_time_that_does_not_fit_is_refused() -> None:
    memory = MicroBatchSizes(3)
    assert memory.halve(A, "node-1") == 1
    with pytest.raises(ModelTooLargeError, match="node-1 runs out of memory with a single"):
        memory.halve(A, "node-1")


def test_two_ranks_of_a_node_that_run_out_at_once_halve_it_once() -> None:
    memory = MicroBatchSizes(8)
    assert memory.halve(A, "node-1", tried=8) == memory.halve(A, "node-1", tried=8) == 4
    assert memory.of((A, A, B)) == (4, 4, 8)


def test_a_new_leader_learns_it_from_the_ledger() -> None:
    memory = MicroBatchSizes(8)
    memory.take_up({4: opened(4, 2, 8, 2), 3: opened(3, 2, 8, 4), 2: opened(2, 1, 1, 1)}, 2)
    assert memory.of((B, A)) == (2, 8)


def test_each_device_has_a_default_of_its_own_below_which_its_memory_may_bring_it() -> None:
    memory = MicroBatchSizes(8)
    memory.expect(A, 64)
    assert memory.of((A, B)) == (64, 8)
    memory.limit(A, 48)
    assert memory.of((A, B)) == (48, 8)
    assert memory.halve(A, "node-1", tried=48) == 24
    memory.expect(A, 64)
    assert memory.of((A, B)) == (24, 8)


def test_attempts_of_an_older_version_say_nothing_of_it() -> None:
    memory = MicroBatchSizes(8)
    memory.take_up({1: opened(1, 1)}, 1)
    assert memory.of((A,)) == (8,)
