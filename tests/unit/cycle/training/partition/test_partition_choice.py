"""Each rank holds the model where it fits as asked; else all do together; else it is saved on."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupiterd.cycle.training.adapters.adapter import parse_adapter
from jupiterd.cycle.training.architectures import parameter_count
from jupiterd.cycle.training.engine_options import DeviceAbilities
from jupiterd.cycle.training.memory import plan_that_fits
from jupiterd.cycle.training.partition.partition import STAGES, WEIGHTS
from jupiterd.cycle.training.partition.partition_choice import PartitionChoice, chosen_partition
from jupiterd.cycle.training.partition.partition_memory import partition_that_fits, unit_sizes
from jupiterd.cycle.training.plan import TrainPlan
from jupiterd.errors import TooLargeForDeviceError, UsageError
from tests.unit.cycle.training.partition.test_partition_memory import cpus, macs, plan_for, preset

SIZES = st.sampled_from(["25m", "100m", "350m", "1b"])
MEMORY = st.floats(1.0, 32.0)
SHARDS = st.sampled_from(["auto", "off", "1", "2", "3"])


def choice(size: str, devices: list[DeviceAbilities], shard: str = "auto") -> PartitionChoice:
    shape = preset(size)
    return chosen_partition(shape, plan_for(shape), devices, shard)


def with_options(plan: TrainPlan, **options: object) -> TrainPlan:
    return plan.model_copy(update={"options": plan.options.model_copy(update=options)})


@settings(max_examples=40, deadline=None)
@given(SIZES, st.lists(MEMORY, min_size=1, max_size=4), SHARDS, st.booleans())
def test_no_plan_needs_more_than_a_member_has(
    size: str,
    gigabytes: list[float],
    shard: str,
    are_macs: bool,
) -> None:
    devices = macs(*gigabytes) if are_macs else cpus(*gigabytes)
    try:
        found = choice(size, devices, shard)
    except TooLargeForDeviceError:
        return
    if found.partition is None:
        smallest = min(devices, key=lambda device: device.memory_bytes)
        assert found.fit.need.fits(smallest)
    else:
        assert all(need.fits(each) for need, each in zip(found.needs, devices, strict=True))
        assert found.fit.plan.options.optimizer == "adamw"
        assert shard in ("auto", str(found.partition.stage))


@settings(max_examples=25, deadline=None)
@given(SIZES, st.lists(MEMORY, min_size=2, max_size=4))
def test_the_whole_comes_first_then_the_lowest_stage_then_what_is_saved_on(
    size: str, gigabytes: list[float]
) -> None:
    shape, devices = preset(size), cpus(*gigabytes)
    plan, smallest = plan_for(shape), cpus(min(gigabytes))[0]
    try:
        found = choice(size, devices)
    except TooLargeForDeviceError:
        for fails in (
            lambda: plan_that_fits(shape, plan, smallest),
            lambda: partition_that_fits(shape, plan, devices, STAGES),
        ):
            with pytest.raises(TooLargeForDeviceError):
                fails()
        return
    saved_on = {"Muon", "weights in bf16"}.intersection(found.fit.changes)
    lower = STAGES if found.partition is None else STAGES[: found.partition.stage - 1]
    if found.partition is not None or saved_on:
        for stage in lower:
            with pytest.raises(TooLargeForDeviceError):
                partition_that_fits(shape, plan, devices, [stage])
    if found.partition is not None:
        assert _is_saved_on_or_refused(size, smallest)


def _is_saved_on_or_refused(size: str, smallest: DeviceAbilities) -> bool:
    shape = preset(size)
    try:
        fit = plan_that_fits(shape, plan_for(shape), smallest)
    except TooLargeForDeviceError:
        return True
    return bool({"Muon", "weights in bf16"}.intersection(fit.changes))


def test_a_stage_that_people_name_is_taken_though_the_whole_would_fit() -> None:
    found = choice("1m", cpus(16, 16), "2")
    assert found.partition is not None
    assert found.partition.stage == 2
    assert choice("1m", cpus(16, 16)).partition is None


def test_a_stage_that_people_name_and_that_does_not_fit_is_refused() -> None:
    assert choice("1b", cpus(13, 13, 13, 13)).partition is not None
    with pytest.raises(TooLargeForDeviceError, match=r"1b (doesn't fit|needs)"):
        choice("1b", cpus(13, 13, 13, 13), "1")


def test_one_rank_holds_it_whole_whatever_stage_was_named() -> None:
    assert choice("1m", cpus(16), "3").partition is None


def test_a_refusal_says_what_cutting_would_take() -> None:
    hints: list[str] = []
    for devices, shard in ((cpus(2, 2), "auto"), (cpus(2, 2), "off"), (cpus(2), "auto")):
        with pytest.raises(TooLargeForDeviceError, match=r"1b needs .* smallest device") as refused:
            choice("1b", devices, shard)
        assert "every one holds" not in refused.value.hint
        hints.append(refused.value.hint)
    together, off, alone = hints
    assert "add a machine, or name one that generates by --nodes: cut over these, 1b" in together
    assert off.endswith("cut it over all of them: --shard auto")
    assert alone.endswith("add a machine, and cut it")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"optimizer": "muon"}, "trained with Muon"),
        ({"weights": "bf16"}, "with weights in bf16"),
        ({"precision": "fp16"}, "trained in fp16"),
        ({"adapter": parse_adapter("rank=4,quantize=4bit")}, "no base that is quantized"),
    ],
)
def test_what_cannot_be_cut_is_never_cut(options: dict[str, object], why: str) -> None:
    shape = preset("1m")
    plan = with_options(plan_for(shape), **options)
    with pytest.raises(UsageError, match=why):
        chosen_partition(shape, plan, cpus(16, 16), "3")
    assert chosen_partition(shape, plan, cpus(16, 16)).partition is None


def adapted(size: str, lora: str = "rank=4", precision: str = "auto") -> TrainPlan:
    options = {"adapter": parse_adapter(lora), "precision": precision}
    return with_options(plan_for(preset(size)), **options)


def test_a_base_that_no_member_holds_is_cut_and_the_adapter_is_not() -> None:
    shape, plan = preset("1b"), adapted("1b", precision="bf16")
    found = chosen_partition(shape, plan, cpus(2.6, 2.6, 3.6))
    assert found.partition is not None
    assert found.partition.stage == WEIGHTS
    assert found.partition.parts[2] > found.partition.parts[0]
    whole = plan_that_fits(shape, plan, cpus(16)[0]).need
    for need in found.needs:
        assert need.weights < 0.8 * whole.weights
        assert (need.gradients, need.optimizer) == (whole.gradients, whole.optimizer)


def test_a_base_in_bf16_is_held_in_two_bytes() -> None:
    shape = preset("1b")
    of_kind = {
        kind: chosen_partition(shape, adapted("1b", precision=kind), cpus(16, 16), "3").needs[0]
        for kind in ("fp32", "bf16")
    }
    assert of_kind["fp32"].frozen == 2 * of_kind["bf16"].frozen == 4 * parameter_count(shape)
    trained = of_kind["bf16"].gradients // 4
    held = of_kind["bf16"].weights - 6 * trained
    layer, outside = unit_sizes(shape)
    assert held == pytest.approx(parameter_count(shape) + 2 * (2 * layer + outside), rel=0.01)


def test_a_base_that_every_member_holds_stays_whole_unless_it_is_asked_for() -> None:
    shape, plan = preset("1m"), adapted("1m")
    assert chosen_partition(shape, plan, cpus(16, 16)).partition is None
    asked = chosen_partition(shape, plan, cpus(16, 16), "3").partition
    assert asked is not None
    assert asked.stage == WEIGHTS


@pytest.mark.parametrize("stage", ["1", "2"])
def test_beside_an_adapter_there_is_one_stage(stage: str) -> None:
    with pytest.raises(UsageError, match=r"its base are cut, which is stage 3") as refused:
        chosen_partition(preset("1m"), adapted("1m"), cpus(16, 16), stage)
    assert refused.value.hint == "choose --shard 3, or auto"
