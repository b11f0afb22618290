"""The micro batch that a plan tells of, and that a rank is told."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupiterd import __version__
from jupiterd.cluster.planning.engines import TORCH
from jupiterd.cluster.values.hardware import Gpu, Hardware
from jupiterd.cycle.micro_batches.known_choices import Choice, key_of, with_choice
from jupiterd.cycle.training.memory import options_on
from jupiterd.cycle.training.plan import ModelShape, TrainPlan, derive
from jupiterd.daemon.catalog.model_specs import presets
from jupiterd.daemon.commands.term_adapters import start_training
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.daemon.planning.machine_devices import Seat, device_of
from jupiterd.daemon.planning.node_micro_batch import expected_micro_batch, plan_on
from jupiterd.ids import NodeId
from jupiterd.protocol.commands.train_commands import StartTraining
from tests.support.cluster.building import data_asked
from tests.unit.daemon.commands.test_train_commands import MADE, leads

GB = 10**9
H100 = "NVIDIA H100 80GB HBM3"
CARD = Gpu(H100, "GPU-1", 80 * GB, "cuda")
SHAPE = next(shape for shape in presets() if shape.size == "25m")
MACHINE = Hardware(
    "Linux", "x86_64", "Xeon", 16, 128 * GB, engines=("torch",),
    versions=(("jupiterd", __version__), ("torch", "2.11.0")),
)  # fmt: skip
WITH_CARD = replace(MACHINE, gpus=(CARD,), devices=("cuda:0",))


def plan_of(**options: str) -> TrainPlan:
    plan = derive(SHAPE, 1)
    return plan.model_copy(update={"options": plan.options.model_copy(update=options)})


def seat_on(machine: Hardware) -> Seat:
    return Seat(NodeId("a"), machine, device_of(TORCH, machine))


def kept(folder: Path, shape: ModelShape, plan: TrainPlan, choice: Choice) -> Path:
    device = device_of(TORCH, WITH_CARD)
    options, versions = options_on(device, shape, plan), dict(MACHINE.versions)
    key = key_of(shape, plan.batch_sequences, options, H100, versions)
    file = folder / "micro_batches.json"
    file.write_text(with_choice("", key, choice))
    return file


def test_a_rank_on_a_large_card_is_told_a_plan_that_fills_it():
    plan = plan_of()
    assert plan_on(TORCH, WITH_CARD, SHAPE, plan).micro_batch_sequences == 64
    assert plan_on(TORCH, MACHINE, SHAPE, plan).micro_batch_sequences == 2, "on a CPU"
    assert plan_on(TORCH, None, SHAPE, plan) == plan, "nobody knows that machine"
    assert plan_on(TORCH, WITH_CARD, SHAPE, plan).hash() == plan.hash()


def test_what_people_say_is_what_a_rank_is_told():
    fixed = plan_of(micro_batch="fixed")
    assert plan_on(TORCH, WITH_CARD, SHAPE, fixed) == fixed


def test_what_was_measured_on_this_machine_is_told_beforehand(tmp_path: Path):
    plan, seat = plan_of(), seat_on(WITH_CARD)
    options = options_on(seat.device, SHAPE, plan)
    file = kept(tmp_path, SHAPE, plan, Choice(32, 64, 1_081_000.0))
    found = expected_micro_batch(seat, SHAPE, plan, options, file)
    assert (found.sequences, found.source) == (32, "measured")
    assert found.lines() == ["Micro batches of 32: measured here before, 1,081,000 tokens/s"]


@pytest.mark.parametrize("text", [None, "", "{", "\x00"])
def test_without_a_file_that_can_be_read_the_default_is_told(tmp_path: Path, text: str | None):
    plan, seat = plan_of(), seat_on(WITH_CARD)
    options = options_on(seat.device, SHAPE, plan)
    file = tmp_path / "micro_batches.json"
    if text is not None:
        file.write_text(text)
    found = expected_micro_batch(seat, SHAPE, plan, options, file)
    assert (found.sequences, found.source) == (64, "default")
    assert expected_micro_batch(seat, SHAPE, plan, options, None) == found
    begun = kept(tmp_path, SHAPE, plan, Choice(64, 64, 0.0, 1))
    assert expected_micro_batch(seat, SHAPE, plan, options, begun) == found


def test_nothing_is_said_of_a_cpu():
    plan, seat = plan_of(), seat_on(MACHINE)
    options = options_on(seat.device, SHAPE, plan)
    found = expected_micro_batch(seat, SHAPE, plan, options, None)
    assert (found.sequences, found.source, found.lines()) == (2, "default", [])
    two = plan.model_copy(update={"micro_batch_sequences": 2})
    assert expected_micro_batch(seat, SHAPE, two, options, None).source == "size"


async def started(leading: TermServices, **settings: Any) -> dict[str, Any]:
    told = {"seq_len": 64, "max_steps": 10} | settings
    asked = {"data": "letters", "settings": told, "model": "1m"}
    return await start_training(leading, StartTraining.read(asked))


async def test_a_run_on_a_card_is_shown_with_what_fills_it_and_recorded_without(tmp_path: Path):
    card = {"gpus": (CARD,), "devices": ("cuda:0",)}
    async with leads(tmp_path, data_asked(), MADE, **card) as leading:
        done = await started(leading)
        assert any(line.startswith("Effective batch 32 x 1 x 1") for line in done["sheet"])
        assert "Micro batches of 32: fill such a GPU" in "\n".join(done["sheet"])
        assert done["expected"]["micro_batch"] == 32
        assert done["expected"]["micro_batch_from"] == "default"
        assert done["batch_size"] == 1


async def test_a_run_may_say_how_many_sequences_each_device_holds(tmp_path: Path):
    async with leads(tmp_path, data_asked(), MADE) as leading:
        done = await started(leading, fixed_micro_batch=4)
        assert any(line.startswith("Effective batch 4 x 8 x 1 = 32") for line in done["sheet"])
        assert "Micro batches of 4: as asked" in done["sheet"]
        assert done["expected"]["micro_batch_from"] == "asked"
