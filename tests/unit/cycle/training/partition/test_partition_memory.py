"""A model larger than any one machine: what each holds follows from the memory that it has."""

from itertools import pairwise

import pytest

from jupiterd.cycle.training.architectures import parameter_count
from jupiterd.cycle.training.engine_options import DeviceAbilities
from jupiterd.cycle.training.memory import plan_that_fits
from jupiterd.cycle.training.partition.partition import STAGES
from jupiterd.cycle.training.partition.partition_memory import (
    PartitionFit,
    partition_that_fits,
    unit_sizes,
)
from jupiterd.cycle.training.plan import ModelShape, TrainPlan, derive, parse_model
from jupiterd.errors import TooLargeForDeviceError
from jupiterd.locations import config_folder

GB = 10**9


def preset(size: str) -> ModelShape:
    return parse_model((config_folder() / "models" / f"{size}.yaml").read_text())


def plan_for(shape: ModelShape) -> TrainPlan:
    return derive(shape, round_number=1, seed=1)


def macs(*gigabytes: float) -> list[DeviceAbilities]:
    """Return Macs whose GPUs may use so much, of half as much again."""
    return [
        DeviceAbilities("mlx", "gpu", round(n * GB), has_bf16=True, ram_bytes=round(1.5 * n * GB))
        for n in gigabytes
    ]


def cpus(*gigabytes: float) -> list[DeviceAbilities]:
    return [DeviceAbilities("torch", "cpu", round(n * GB)) for n in gigabytes]


def fit(
    size: str, devices: list[DeviceAbilities], stages: tuple[int, ...] = STAGES
) -> PartitionFit:
    shape = preset(size)
    return partition_that_fits(shape, plan_for(shape), devices, stages)


def test_units_add_up_to_the_model() -> None:
    shape = preset("1b")
    layer, outside = unit_sizes(shape)
    assert shape.layers * layer + outside == parameter_count(shape)


def test_what_no_mac_mini_can_hold_four_can() -> None:
    shape = preset("1b")
    with pytest.raises(TooLargeForDeviceError):
        plan_that_fits(shape, plan_for(shape), macs(10.9)[0])
    found = fit("1b", macs(10.9, 10.9, 10.9, 10.9))
    assert all(need.fits(mac) for need, mac in zip(found.needs, macs(*[10.9] * 4), strict=True))
    assert found.fit.plan.options.optimizer == "adamw"


def test_the_lowest_stage_that_fits_is_chosen() -> None:
    stages = [fit("1b", cpus(*[gigabytes] * 4)).partition.stage for gigabytes in (16, 10, 9)]
    assert stages == sorted(stages)
    assert len(set(stages)) > 1


def test_who_has_more_to_spare_holds_more() -> None:
    devices = cpus(24, 12, 16)
    found = fit("1b", devices)
    parts = found.partition.parts
    assert parts[0] > parts[2] > parts[1]
    assert all(need.fits(device) for need, device in zip(found.needs, devices, strict=True))


@pytest.mark.parametrize("stage", STAGES)
def test_a_higher_stage_needs_less_of_each(stage: int) -> None:
    devices = cpus(64, 64, 64, 64)
    needs = [fit("1b", devices, (each,)).fit.need for each in range(1, stage + 1)]
    assert all(later.total < earlier.total for earlier, later in pairwise(needs))


def test_too_little_memory_is_told_in_all_and_of_one() -> None:
    with pytest.raises(TooLargeForDeviceError, match=r"there is room for \d+ % of it"):
        fit("1b", cpus(4, 4, 4, 4))
    with pytest.raises(TooLargeForDeviceError, match="on each machine even where it is cut"):
        fit("1b", cpus(64, 0.5))


@pytest.mark.parametrize(("stage", "is_alike"), [(1, False), (2, True), (3, True)])
def test_mlx_keeps_what_goes_into_a_layer_alone_where_gradients_are_cut(
    stage: int, is_alike: bool
) -> None:
    """Its engine computes layers twice there, whatever was asked for."""
    shape = preset("100m")
    needs = []
    for switch in ("off", "on"):
        plan = plan_for(shape)
        options = plan.options.model_copy(update={"gradient_checkpointing": switch})
        plan = plan.model_copy(update={"options": options, "micro_batch_sequences": 1})
        found = partition_that_fits(shape, plan, macs(64, 64), (stage,))
        assert found.fit.plan.options.gradient_checkpointing == switch
        needs.append(found.needs[0].activations)
    assert (needs[0] == needs[1]) is is_alike
