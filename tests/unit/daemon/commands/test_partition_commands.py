"""What is said of a model's parts and of members' memory: refused, recorded and foretold."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jupiterd.cluster.facts.facts import CycleStarted, CycleStateSet, TrainingStarted
from jupiterd.cluster.ledger.cycle_state import STOPPED
from jupiterd.cluster.planning.engines import EngineChoice
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.daemon.commands import start_cycle as asking
from jupiterd.daemon.commands import train_commands as ordering
from jupiterd.daemon.commands.start_cycle import planned_cycle
from jupiterd.daemon.commands.train_commands import planned_training
from jupiterd.daemon.leader.machines import Machines
from jupiterd.daemon.planning import requested_machines
from jupiterd.daemon.planning import training_estimate as estimating
from jupiterd.daemon.planning.partition_support import check_can_cut
from jupiterd.errors import NotFoundError, TooLargeForDeviceError, UsageError
from jupiterd.ids import NodeId
from jupiterd.protocol.commands.cycle_commands import StartCycle
from jupiterd.protocol.commands.train_commands import StartTraining
from tests.support.daemon.term_parts import FakeMachines
from tests.unit.daemon.commands.test_start_cycle import DOMAIN
from tests.unit.daemon.commands.test_train_commands import FOLDER
from tests.unit.daemon.planning.test_layout_inputs import BOX, EARLIER, NAMES, leading_of
from tests.unit.daemon.planning.test_rank_order import A, B, C

GB = 10**9
ABLE = replace(
    BOX,
    ram_bytes=24 * GB,
    cut_engines=("torch", "mlx"),
    cut_base_engines=("torch",),
    devices=("cpu",),
    trains_adapters=True,
)

BESIDE = {"lora": "rank=4", "recipe": "tuning"}


def members(monkeypatch: pytest.MonkeyPatch, machines: dict[NodeId, Hardware]) -> Any:
    """A cluster of which these train."""
    done = CycleStateSet(EARLIER, STOPPED, "stopped by a person", 1)
    leading = leading_of(done, **{NAMES[node]: machine for node, machine in machines.items()})
    leading.placement.machines = leading.machines
    for module in (requested_machines, asking, estimating, ordering):
        monkeypatch.setattr(module, "trainers", lambda *_: machines)
    monkeypatch.setattr(FakeMachines, "is_alike", lambda *_: True)
    leading.machines.alive = leading.machines.answering = lambda: frozenset(machines)
    return leading.fleet_view


def run(
    monkeypatch: pytest.MonkeyPatch,
    machines: dict[NodeId, Hardware] | None = None,
    size: str = "1b",
    **said: object,
) -> tuple[TrainingStarted, dict[str, Any]]:
    fleet = members(monkeypatch, dict.fromkeys((A, B, C), ABLE) if machines is None else machines)
    command = StartTraining.read({**FOLDER, "model": size, "settings": said})
    facts, document = planned_training(fleet, command)
    started = facts[-1]
    assert isinstance(started, TrainingStarted)
    return started, document


def cycle(
    monkeypatch: pytest.MonkeyPatch, *, size: str = "1b", text: str = "", **said: object
) -> tuple[CycleStarted, dict[str, Any]]:
    fleet = members(monkeypatch, dict.fromkeys((A, B, C), ABLE))
    domain = f"{DOMAIN['domain_yaml'].rstrip()}\n{text}\n" if text else DOMAIN["domain_yaml"]
    settings = said.pop("settings", {})
    asked = {"domain_yaml": domain, "size": size, "training": said, "settings": settings}
    return planned_cycle(fleet, StartCycle.read({**DOMAIN, **asked}))


def test_a_model_that_no_machine_holds_is_cut_and_told_with_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started, document = run(monkeypatch)
    assert started.settings["shard"] == "auto", "whoever leads may cut it"
    cut = document["expected"]["partition"]
    assert [member["name"] for member in cut["members"]] == ["a", "b", "c"]
    assert sum(member["part"] for member in cut["members"]) == pytest.approx(1, abs=0.01)
    assert all(member["bytes"] <= 0.9 * member["memory_bytes"] for member in cut["members"])
    told = "\n".join(document["sheet"])
    assert f"1b over 3 machines, stage {cut['stage']}: " in told
    assert "; about as fast as whole" in told, "a CPU computes for minutes"
    assert "a 33 % of it, " in told
    assert "of 24.0 GB" in told
    assert "A machine that is lost costs what came since the last whole checkpoint: about " in told
    assert document["islands"] == 0
    assert started.settings["optimizer"] == "auto", "AdamW is the size's own"


def test_a_model_that_every_machine_holds_is_whole_and_records_nothing_new(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started, document = run(monkeypatch, size="1m")
    assert {"shard", "memory"}.isdisjoint(started.settings), "older builds refuse them"
    assert "partition" not in document["expected"]


def test_a_stage_that_people_name_is_recorded_and_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    started, document = run(monkeypatch, size="1m", shard="2")
    assert started.settings["shard"] == "2"
    assert document["expected"]["partition"]["stage"] == 2


def test_off_saves_on_memory_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    started, document = run(monkeypatch, shard="off")
    assert (started.settings["shard"], started.settings["optimizer"]) == ("off", "muon")
    assert "partition" not in document["expected"]


def test_a_limit_is_recorded_by_the_member_s_id_and_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    started, document = run(monkeypatch, size="25m", memory="a=1.2 b=1.2 c=1.2")
    assert started.settings["memory"] == f"{A}=1.2 {B}=1.2 {C}=1.2"
    held = document["expected"]["partition"]["members"]
    assert [member["memory_bytes"] for member in held] == [1_200_000_000] * 3


def test_a_limit_that_is_large_enough_leaves_the_model_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, document = run(monkeypatch, size="1m", memory="a=2")
    assert "partition" not in document["expected"]
    assert document["expected"]["device_memory_bytes"] == 2 * GB


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"memory": "attic=4"}, "no node is called attic"),
        ({"memory": "a=lots"}, "--memory a=lots: that is no NODE=GB"),
        ({"shard": "4"}, "shard: "),
        ({"shard": "1", "optimizer": "muon"}, "trained with Muon"),
        ({"shard": "1", "weights": "bf16"}, "with weights in bf16"),
        ({"shard": "1", "islands": "torch:a torch:b"}, "--shard 1: each island is one machine"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    said: dict[str, object], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises((UsageError, NotFoundError)) as refused:
        run(monkeypatch, size="1m", **said)
    assert why in refused.value.message
    assert "\n" not in refused.value.message + refused.value.hint


def test_islands_of_several_machines_hold_the_model_together_where_people_say_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started, document = run(monkeypatch, size="1m", shard="2", islands="torch:a,b torch:c")
    assert started.settings["shard"] == "2", "the islands' runs inherit it"
    (cut,) = document["expected"]["partitions"]
    assert (cut["island"], cut["stage"]) == (1, 2)
    assert [member["name"] for member in cut["members"]] == ["a", "b"]
    told = "\n".join(document["sheet"])
    assert "Island 1: 1m over 2 machines, stage 2: " in told
    assert "; how much slower than whole isn't known" in told
    assert document["islands"] == 2


def test_an_island_whose_machines_have_too_little_memory_is_cut_and_one_that_holds_all_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = {"islands": "torch:a,b torch:c", "size": "25m"}
    started, document = run(monkeypatch, memory="a=1.9 b=1.9", **said)
    assert started.settings["shard"] == "auto", "whoever leads may cut it"
    (cut,) = document["expected"]["partitions"]
    assert [member["memory_bytes"] for member in cut["members"]] == [1_900_000_000] * 2
    assert all(member["bytes"] <= 0.9 * member["memory_bytes"] for member in cut["members"])
    started, document = run(monkeypatch, **said)
    assert "partitions" not in document["expected"]
    assert "shard" not in started.settings


def test_a_stage_is_refused_beside_an_island_of_one_machine_that_can_t_hold_the_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = {"islands": "torch:a,b torch:c", "size": "25m", "shard": "3"}
    with pytest.raises(TooLargeForDeviceError, match="25m needs 1"):
        run(monkeypatch, memory="c=0.6", **said)


def test_beside_an_adapter_its_base_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    started, document = run(monkeypatch, size="1m", shard="3", **BESIDE)
    assert started.settings["shard"] == "3"
    assert document["expected"]["partition"]["stage"] == 3
    told = "\n".join(document["sheet"])
    assert "1m over 3 machines, stage 3: the weights beside the adapter are cut; " in told
    assert "a machine that is lost costs a step at most" in told


def test_islands_hold_the_base_beside_an_adapter_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    islands = {"islands": "torch:a,b torch:c"}
    with pytest.raises(UsageError, match="islands hold the base beside an adapter whole"):
        run(monkeypatch, size="1m", shard="3", **islands, **BESIDE)
    started, document = run(monkeypatch, size="1m", **islands, **BESIDE)
    assert "partitions" not in document["expected"]
    assert "shard" not in started.settings


@pytest.mark.parametrize("stage", ["1", "2"])
def test_beside_an_adapter_there_is_no_other_stage(
    stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="which is stage 3"):
        run(monkeypatch, size="1m", shard=stage, **BESIDE)


def test_a_member_that_holds_no_part_of_a_base_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    mixed = {A: ABLE, B: replace(ABLE, cut_base_engines=()), C: ABLE}
    with pytest.raises(UsageError, match=r"b runs a build .* hold a part of an adapter's base"):
        run(monkeypatch, mixed, size="1m", shard="3", **BESIDE)
    _, document = run(monkeypatch, mixed, size="1m", **BESIDE)
    assert "partition" not in document["expected"]


def test_where_the_engine_holds_no_part_of_a_base_the_one_that_does_is_named() -> None:
    able = replace(ABLE, cut_base_engines=("torch",))
    machines = cast(
        "Machines", SimpleNamespace(hardware_of=lambda _: able, name_of=lambda node: f"n{node[0]}")
    )
    choice = EngineChoice("mlx", (A, B), "")
    with pytest.raises(UsageError, match="on mlx yet") as refused:
        check_can_cut(machines, choice, "--shard 3", of_base=True)
    assert refused.value.hint == "train on torch: --engine torch, or leave out --shard"


def test_one_machine_has_nobody_to_share_a_model_with(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="--shard 1: one rank trains") as refused:
        run(monkeypatch, {A: ABLE}, size="1m", shard="1")
    assert "another machine" in refused.value.hint


def test_a_member_of_an_older_build_refuses_what_is_said_and_is_never_cut_unasked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mixed = {A: ABLE, B: replace(ABLE, cut_engines=()), C: ABLE}
    for said in ({"shard": "auto"}, {"shard": "off"}, {"memory": "a=4"}):
        with pytest.raises(UsageError, match=r"b runs a build of jupiterd that can't train a part"):
            run(monkeypatch, mixed, size="1m", **said)
    started, document = run(monkeypatch, mixed)
    assert started.settings["optimizer"] == "muon", "as before models were cut"
    assert "partition" not in document["expected"]


def test_what_fits_nowhere_is_refused_with_what_cutting_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small = dict.fromkeys((A, B, C), replace(ABLE, ram_bytes=2 * GB))
    with pytest.raises(TooLargeForDeviceError, match="1b needs") as refused:
        run(monkeypatch, small)
    assert (
        "add a machine, or name one that generates by --nodes: cut over these, 1b"
        in refused.value.hint
    )


def test_a_cycle_is_cut_as_a_run_is(monkeypatch: pytest.MonkeyPatch) -> None:
    started, forecast = cycle(monkeypatch)
    assert started.settings["shard"] == "auto"
    assert forecast["expected"]["partition"]["stage"] >= 1
    assert any(line.startswith("1b over 3 machines, stage") for line in forecast["sheet"])
    assert started.settings["islands"] == "off"


def test_a_domain_says_it_in_the_same_words_and_the_command_counts_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started, _ = cycle(monkeypatch, size="1m", text="training: {shard: 2}")
    assert started.settings["shard"] == "2"
    started, forecast = cycle(monkeypatch, size="1m", text="training: {shard: 2}", shard="off")
    assert started.settings["shard"] == "off"
    assert "partition" not in forecast["expected"]
    started, _ = cycle(monkeypatch, size="1m", memory="b=4")
    assert started.settings["memory"] == f"{B}=4"
    started, _ = cycle(monkeypatch, size="1m")
    assert {"shard", "memory"}.isdisjoint(started.settings)
