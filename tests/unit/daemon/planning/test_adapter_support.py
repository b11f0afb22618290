"""Machines of older builds, which can't train adapters, and such that lack bitsandbytes."""

from dataclasses import replace

import pytest

from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.planning.engines import EngineChoice
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.daemon.planning.adapter_support import (
    LACKS_BITSANDBYTES,
    TRAINS_NONE,
    check_all_train_adapters,
    is_quantized,
    left_out,
    that_train_it,
    without_bitsandbytes,
)
from jupiterd.errors import PeerUnreachableError, UsageError
from tests.support.cluster.building import NODES, training
from tests.support.daemon.term_parts import FakeMachines

OLD = Hardware("Linux", "x86_64", "a CPU", 8, 16 << 30)
NEW = replace(OLD, trains_adapters=True)
ABLE = replace(NEW, has_bitsandbytes=True)
A, B, C = NODES[:3]


def run_with(lora: str, engine: str = "torch") -> CycleState:
    state = CycleState()
    settings = {**training().settings, "lora": lora}
    state.apply(replace(training(), settings=settings, engine=engine), (1, A, "u", 1))
    return state


def test_a_member_that_is_alive_and_older_is_named_with_what_to_do() -> None:
    names = {A: "attic", B: "the mini", C: "cellar"}
    with pytest.raises(UsageError, match="the mini runs a build of jupiterd") as refused:
        check_all_train_adapters(FakeMachines({A: NEW, B: OLD, C: OLD}, names, [A, B]), "rank=4")
    assert "upgrade it" in refused.value.hint
    assert "jupiterctl node remove 'the mini'" in refused.value.hint
    with pytest.raises(UsageError, match="cellar, the mini run builds"):
        check_all_train_adapters(FakeMachines({A: NEW, B: OLD, C: OLD}, names, [A, B, C]), "rank=4")
    check_all_train_adapters(FakeMachines({A: NEW, B: OLD}, names, [A, C]), "rank=4")


def test_an_adapter_goes_on_without_machines_that_cannot_train_it() -> None:
    assert that_train_it({A: NEW, B: OLD}, run_with("rank=4")) == {A: NEW}
    assert that_train_it({A: NEW, B: OLD}, run_with("")) == {A: NEW, B: OLD}
    assert that_train_it({}, run_with("rank=4")) == {}
    with pytest.raises(PeerUnreachableError, match="can train adapters"):
        that_train_it({B: OLD}, run_with("rank=4"))


def test_who_is_left_out_of_a_run_is_known_with_the_reason() -> None:
    assert left_out({A: NEW, B: OLD}, run_with("rank=4")) == {B: TRAINS_NONE}
    assert left_out({A: NEW, B: OLD, C: ABLE}, run_with("quantize=4bit")) == {
        A: LACKS_BITSANDBYTES,
        B: TRAINS_NONE,
    }
    assert left_out({A: NEW, B: OLD}, run_with("")) == {}
    assert left_out({B: OLD}, run_with("rank=4")) == {}, (
        "nobody trains, which is an error of its own"
    )


def test_a_machine_tells_that_it_trains_adapters_and_an_older_one_does_not() -> None:
    assert Hardware.from_plain(NEW.to_plain()) == NEW
    older = {name: value for name, value in NEW.to_plain().items() if name != "trains_adapters"}
    assert Hardware.from_plain(older) == OLD


def test_a_quantized_base_goes_on_on_torch_without_machines_that_lack_bitsandbytes() -> None:
    assert that_train_it({A: NEW, B: ABLE}, run_with("rank=4,quantize=8bit")) == {B: ABLE}
    for run in (run_with("rank=4,quantize=none"), run_with("quantize=4bit", "mlx")):
        assert that_train_it({A: NEW, B: ABLE}, run) == {A: NEW, B: ABLE}
    with pytest.raises(PeerUnreachableError, match="no node that is here has bits") as caught:
        that_train_it({A: NEW}, run_with("quantize=4bit"))
    assert "pip install 'jupiterd[quantized]'" in (caught.value.hint or "")


def test_who_lacks_bitsandbytes_is_named_where_torch_is_to_quantize() -> None:
    machines = FakeMachines({A: NEW, B: ABLE}, {A: "attic", B: "cellar", C: "gone"}, [A, B])
    on_torch, on_mlx = (EngineChoice(each, (A, B, C), "") for each in ("torch", "mlx"))
    assert without_bitsandbytes(machines, [on_torch]) == ["attic"]
    assert without_bitsandbytes(machines, [on_mlx]) == []


def test_a_text_says_whether_its_base_is_quantized() -> None:
    assert is_quantized("rank=4, quantize=4bit")
    assert not any(map(is_quantized, ("", "rank=4", "quantize=none,rank=8")))


def test_a_machine_tells_that_it_has_bitsandbytes_and_an_older_one_does_not() -> None:
    assert Hardware.from_plain(ABLE.to_plain()) == ABLE
    older = {name: value for name, value in ABLE.to_plain().items() if name != "has_bitsandbytes"}
    assert Hardware.from_plain(older) == NEW


@pytest.mark.parametrize("lora", ["rank=4,dropout=0.1", "dora", "rank=4, dora", "dropout=5e-2"])
def test_a_build_that_trains_adapters_and_knows_no_dropout_is_named(lora: str) -> None:
    newest = replace(NEW, trains_dropout=True)
    names = {A: "attic", B: "the mini"}
    with pytest.raises(UsageError, match=r"the mini runs a build .* adapters with dropout or DoRA"):
        check_all_train_adapters(FakeMachines({A: newest, B: NEW}, names, [A, B]), lora)
    check_all_train_adapters(FakeMachines({A: newest, B: NEW}, names, [A]), lora)
    run = run_with(lora)
    assert that_train_it({A: newest, B: NEW}, run) == {A: newest}
    assert left_out({A: newest, B: NEW}, run) == {B: f"{TRAINS_NONE} with dropout or DoRA"}
    with pytest.raises(PeerUnreachableError, match="with dropout or DoRA"):
        that_train_it({B: NEW}, run)


@pytest.mark.parametrize("lora", ["rank=4", "rank=4,dropout=0", "dropout=0.0,layers=all"])
def test_an_adapter_without_dropout_is_trained_by_builds_that_know_none(lora: str) -> None:
    names = {A: "attic", B: "the mini"}
    check_all_train_adapters(FakeMachines({A: NEW, B: NEW}, names, [A, B]), lora)
    assert that_train_it({A: NEW, B: NEW}, run_with(lora)) == {A: NEW, B: NEW}
