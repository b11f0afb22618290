"""What people say of members' memory, and what is recorded of it."""

from dataclasses import replace

import pytest

from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.training.asked_partition import asked_shard, memory_limits
from jupiterd.cluster.training.memory_limits import meant, read, written
from jupiterd.errors import NotFoundError, UsageError
from tests.support.cluster.building import NODES, training

A, B = NODES[:2]
NAMES = {A: "mini", B: "studio"}


def test_a_limit_is_said_by_name_and_recorded_by_id() -> None:
    found = meant("mini=8 studio=16.5", NAMES)
    assert found == {A: 8_000_000_000, B: 16_500_000_000}
    assert read(written(found)) == found
    assert written({}) == ""
    assert read("") == {}


@pytest.mark.parametrize(
    "said", ["mini", "mini=", "mini=lots", "mini=0", "mini=-1", "mini=nan", "=4"]
)
def test_what_is_no_limit_is_refused_with_an_example(said: str) -> None:
    with pytest.raises(UsageError, match="no NODE=GB") as refused:
        meant(said, NAMES)
    assert "--memory mini=8" in refused.value.hint


def test_a_node_that_nobody_knows_or_that_is_named_twice_is_refused() -> None:
    with pytest.raises(NotFoundError, match="no node is called attic"):
        meant("attic=4", NAMES)
    with pytest.raises(UsageError, match="names mini twice"):
        meant("mini=4 mini=5", NAMES)


@pytest.mark.parametrize(
    ("said", "may_be_cut"), [("", ""), ("off", ""), ("auto", "auto"), ("2", "2")]
)
def test_what_was_recorded_says_whether_a_model_may_be_cut(said: str, may_be_cut: str) -> None:
    state = CycleState()
    asked = {**training().settings, "shard": said, "memory": f"{A}=4"}
    state.apply(replace(training(), settings=asked), (1, A, "u", 1))
    assert asked_shard(state) == may_be_cut
    assert memory_limits(state) == {A: 4_000_000_000}
    assert (asked_shard(CycleState()), memory_limits(CycleState())) == ("", {})
