"""Which workers a node keeps warm, and for how long after they are of use."""

from types import SimpleNamespace
from typing import cast

import pytest

from jupiterd.cluster.facts.facts import CycleStateSet, EpochClosed, EpochOpened
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.app.on_ledger_change import _is_idle
from jupiterd.daemon.gangs.warm_pool_policy import wanted_kinds
from jupiterd.ids import CycleId, NodeId

A = NodeId("a" * 32)
CYCLE = CycleId("c" * 16)
OPENED = EpochOpened(CYCLE, 1, 3, (A,), "torch/gloo", "", 0)
STOPPED = CycleStateSet(CYCLE, "stopped", "a person", 1)
CLOSED = EpochClosed(CYCLE, 3, "it was stopped", 1.0)


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
    facts: tuple[EpochOpened | EpochClosed | CycleStateSet, ...], kinds: set[str], is_idle: bool
) -> None:
    cycle = CycleState()
    for number, fact in enumerate(facts, 1):
        cycle.apply(fact, (1, A, "u", number))
    node = SimpleNamespace(
        journal=SimpleNamespace(state=SimpleNamespace(cycles={CYCLE: cycle}, roles={})),
        identity=SimpleNamespace(node_id=A),
        hardware=SimpleNamespace(engines=("torch",), devices=("cpu",)),
        settings=SimpleNamespace(threads=1, local=True),
    )
    assert set(wanted_kinds(cast("Node", node))) == kinds
    assert _is_idle(cast("Node", node)) is is_idle
