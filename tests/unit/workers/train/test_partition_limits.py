"""Ranks to which the system gives no more memory than a part of a model takes train it together."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from jupiterd.cycle.training.engine_options import DeviceAbilities
from jupiterd.cycle.training.memory import PROGRAM_BYTES, memory_need
from jupiterd.cycle.training.partition.partition import Partition
from jupiterd.cycle.training.partition.partition_choice import PartitionChoice, chosen_partition
from jupiterd.cycle.training.plan import ModelShape, TrainPlan, derive
from jupiterd.cycle.training.rank_memory import RESERVED_SHARE
from tests.support.workers.gangs import Gangs, Told
from tests.support.workers.tiny_run import tiny_shape

pytestmark = [
    pytest.mark.net,
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.xdist_group("gangs"),
]

ENGINES = ("torch",)
STEPS = 50
BATCH = 4
ABOUT_A_THIRD = 0.4
"""Of what the whole model takes; a plan keeps a tenth of it in reserve."""


def shape() -> ModelShape:
    """Return 13 million parameters in thin layers: no single one takes much."""
    return tiny_shape(layers=30, hidden=192, ff=576, heads=4, kv_heads=2, head_dim=48)


def plan() -> TrainPlan:
    found = derive(shape(), 1, {"steps": STEPS, "batch_sequences": BATCH, "learning_rate": 1e-3})
    options = {"precision": "fp32", "gradient_checkpointing": "off", "compile": "off"}
    return found.model_copy(
        update={
            "checkpoint_every_steps": STEPS,
            "micro_batch_sequences": 1,
            "options": found.options.model_copy(update=options),
        }
    )


def beside_program(engine: str) -> int:
    """Return what a rank's own arrays take that trains the whole model, in bytes.

    Neither the program counts, nor a copy of everything for a checkpoint.
    """
    device = DeviceAbilities(engine, "cpu", 0)
    return memory_need(
        shape(), plan(), "fp32", gradient_checkpointing=False, device=device
    ).on_device


def planned(engine: str, rooms: Sequence[int]) -> PartitionChoice:
    """Return what is planned for ranks that have so much room beside their program.

    The reserve is kept of that room alone: the program here has its memory for itself.
    """
    program = PROGRAM_BYTES[engine] / (1 - RESERVED_SHARE)
    devices = [DeviceAbilities(engine, "cpu", round(program + room)) for room in rooms]
    return chosen_partition(shape(), plan(), devices)


def trained(
    gangs: Gangs,
    folder: Path,
    engine: str,
    rooms: Sequence[int],
    partition: Partition | None,
    micro_batch: int = 2,
) -> list[Told]:
    folder.mkdir()
    cut: dict[str, Any] = {} if partition is None else {"partition": partition.to_plain()}
    limits = {"room_bytes": list(rooms)} if rooms else {}
    what = {"shape": shape().to_plain(), "plan": plan().to_plain(), **cut, **limits}
    ranks = max(1, len(rooms))
    micro_batches = (micro_batch,) * ranks
    return gangs.trained(folder, engine, STEPS, (0.0,) * ranks, micro_batches, more_params=what)


def losses(told: Told) -> list[float]:
    assert told["error"] == ""
    return [step["loss"] for step in told["steps"]]


@cache
def of_one_machine(gangs: Gangs, folder: Path, engine: str) -> list[float]:
    (told,) = trained(gangs, folder / engine, engine, (), None)
    return losses(told)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("alone")


def check(gangs: Gangs, folder: Path, alone: Path, engine: str, rooms: Sequence[int]) -> Partition:
    """Train as is planned under these limits; return the cut."""
    choice = planned(engine, rooms)
    assert choice.partition is not None
    size = choice.fit.plan.micro_batch_sequences
    told = trained(gangs, folder / "many", engine, rooms, choice.partition, size)
    wanted = of_one_machine(gangs, alone, engine)
    assert [one["error"] for one in told] == [""] * len(rooms)
    for one in told:
        assert losses(one) == pytest.approx(wanted, abs=1e-4)
    return choice.partition


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("share", "stage"), [(ABOUT_A_THIRD, 3), (0.65, 2)])
def test_four_that_have_room_for_a_part_train_in_the_stage_that_is_planned(
    gangs: Gangs, folder: Path, engine: str, share: float, stage: int, tmp_path: Path
) -> None:
    rooms = (round(share * beside_program(engine)),) * 4
    assert check(gangs, tmp_path, folder, engine, rooms).stage == stage


@pytest.mark.parametrize("engine", ENGINES)
def test_unlike_ones_train_what_their_memory_has_room_for(
    gangs: Gangs, folder: Path, engine: str, tmp_path: Path
) -> None:
    rooms = [round(part / 52 * 1.6 * beside_program(engine)) for part in (24, 12, 16)]
    partition = check(gangs, tmp_path, folder, engine, rooms)
    assert partition.parts[0] > partition.parts[2] > partition.parts[1]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("share", [ABOUT_A_THIRD, 0.65])
def test_whole_replicas_get_no_further_than_that_limit(
    gangs: Gangs, engine: str, share: float, tmp_path: Path
) -> None:
    rooms = (round(share * beside_program(engine)),) * 4
    told = trained(gangs, tmp_path / "whole", engine, rooms, None)
    assert any("out of memory" in one["error"] for one in told)
    assert not any(one["steps"][-1:] and "loss" in one["steps"][-1] for one in told)
