"""Which workers a node keeps warm, and for how long after they are of use."""

import pytest

from jupiterd.cluster.facts.attempt_facts import AttemptClosed, AttemptOpened
from jupiterd.cluster.facts.facts import CycleStateSet
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.daemon.app.on_ledger_change import is_idle_after
from jupiterd.daemon.gangs.warm_pool_policy import WarmPoolPolicy
from jupiterd.daemon.runtime.settings import Settings
from jupiterd.ids import CycleId, NodeId

A = NodeId("a" * 32)
CYCLE = CycleId("c" * 16)
OPENED = AttemptOpened(CYCLE, 1, 3, (A,), "torch/gloo", "", 0)
STOPPED = CycleStateSet(CYCLE, "stopped", "a person", 1)
CLOSED = AttemptClosed(CYCLE, 3, "it was stopped", 1.0)


@pytest.mark.parametrize(
    ("facts", "kinds", "is_idle"),
    [
        ((OPENED,), {"torch"}, False),
        ((OPENED, CLOSED), set[str](), False),
        ((OPENED, STOPPED), set[str](), False),
        ((OPENED, STOPPED, CLOSED), set[str](), True),
    ],
    ids=["it trains", "between two epochs", "its ranks keep their state", "it is over"],
)
def test_what_is_kept_warm(
    facts: tuple[AttemptOpened | AttemptClosed | CycleStateSet, ...], kinds: set[str], is_idle: bool
) -> None:
    cycle = CycleState()
    for number, fact in enumerate(facts, 1):
        cycle.apply(fact, (1, A, "u", number))
    state = State()
    state.cycles[CYCLE] = cycle
    hardware = Hardware("Linux", "x86_64", "", 1, 1, engines=("torch",), devices=("cpu",))
    policy = WarmPoolPolicy(A, hardware, Settings(threads=1, local=True))
    assert set(policy.wanted_kinds(state)) == kinds
    assert is_idle_after(state) is is_idle
