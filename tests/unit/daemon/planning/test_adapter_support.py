"""Machines of older builds, which can't train adapters."""

from dataclasses import replace

import pytest

from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.daemon.planning.adapter_support import check_all_train_adapters, that_train_it
from jupiterd.errors import PeerUnreachableError, UsageError
from tests.support.cluster.building import NODES, training
from tests.support.daemon.term_parts import FakeMachines

OLD = Hardware("Linux", "x86_64", "a CPU", 8, 16 << 30)
NEW = replace(OLD, trains_adapters=True)
A, B, C = NODES[:3]


def run_with(lora: str) -> CycleState:
    state = CycleState()
    settings = {**training().settings, "lora": lora}
    state.apply(replace(training(), settings=settings), (1, A, "u", 1))
    return state


def test_a_member_that_is_alive_and_older_is_named_with_what_to_do() -> None:
    names = {A: "attic", B: "the mini", C: "cellar"}
    with pytest.raises(UsageError, match="the mini runs a build of jupiterd") as refused:
        check_all_train_adapters(FakeMachines({A: NEW, B: OLD, C: OLD}, names, [A, B]))
    assert "upgrade it" in refused.value.hint
    assert "jupiterctl node remove 'the mini'" in refused.value.hint
    with pytest.raises(UsageError, match="cellar, the mini run builds"):
        check_all_train_adapters(FakeMachines({A: NEW, B: OLD, C: OLD}, names, [A, B, C]))
    check_all_train_adapters(FakeMachines({A: NEW, B: OLD}, names, [A, C]))


def test_an_adapter_goes_on_without_machines_that_cannot_train_it() -> None:
    assert that_train_it({A: NEW, B: OLD}, run_with("rank=4")) == {A: NEW}
    assert that_train_it({A: NEW, B: OLD}, run_with("")) == {A: NEW, B: OLD}
    assert that_train_it({}, run_with("rank=4")) == {}
    with pytest.raises(PeerUnreachableError, match="can train adapters"):
        that_train_it({B: OLD}, run_with("rank=4"))


def test_a_machine_tells_that_it_trains_adapters_and_an_older_one_does_not() -> None:
    assert Hardware.from_plain(NEW.to_plain()) == NEW
    older = {name: value for name, value in NEW.to_plain().items() if name != "trains_adapters"}
    assert Hardware.from_plain(older) == OLD
