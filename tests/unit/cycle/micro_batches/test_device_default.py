"""The micro batch that a rank takes before anybody has tried."""

import pytest

from jupiterd.cycle.micro_batches.device_default import (
    METAL_MOST_S,
    default_micro_batch,
    most_micro_batch,
    sequence_s,
)
from jupiterd.cycle.training.engine_options import DeviceAbilities
from jupiterd.cycle.training.memory import memory_need, options_on
from jupiterd.cycle.training.plan import ModelShape, TrainPlan, derive
from jupiterd.daemon.catalog.model_specs import presets

GIB = 1 << 30
H100_FLOPS, T4_FLOPS, MAC_FLOPS = 3e14, 2e13, 2e12
PRESETS = {shape.size: shape for shape in presets()}


def card(memory_gib: float) -> DeviceAbilities:
    memory = round(memory_gib * GIB)
    return DeviceAbilities("torch", "cuda", memory, has_bf16=True, can_compile=True)


def mac(memory_gib: int) -> DeviceAbilities:
    lent, whole = memory_gib * GIB * 3 // 4, memory_gib * GIB
    return DeviceAbilities("mlx", "gpu", lent, has_bf16=True, ram_bytes=whole)


def plan_of(shape: ModelShape, **changes: object) -> TrainPlan:
    return derive(shape, 1).model_copy(update=changes)


def test_a_small_model_gets_its_whole_batch_on_a_large_card():
    shape = PRESETS["25m"]
    plan = plan_of(shape)
    assert (plan.batch_sequences, plan.micro_batch_sequences) == (64, 8)
    assert default_micro_batch(shape, plan, card(80), H100_FLOPS) == 64


def test_a_slow_card_gets_as_much_as_fills_it():
    shape = PRESETS["25m"]
    found = default_micro_batch(shape, plan_of(shape), card(16), T4_FLOPS)
    assert 8 < found < 64
    assert found * sequence_s(shape, T4_FLOPS) >= 0.1


@pytest.mark.parametrize("size", ["25m", "100m", "350m", "1b"])
@pytest.mark.parametrize("memory_gib", [8, 16, 24, 80])
def test_whatever_fits_with_the_default_and_keeps_its_checkpointing(size: str, memory_gib: int):
    shape, device = PRESETS[size], card(memory_gib)
    plan = plan_of(shape)
    before = options_on(device, shape, plan)
    found = default_micro_batch(shape, plan, device, H100_FLOPS)
    assert plan.micro_batch_sequences <= found <= plan.batch_sequences
    filled = plan.model_copy(update={"micro_batch_sequences": found})
    checkpointing = options_on(device, shape, filled).gradient_checkpointing
    assert checkpointing == before.gradient_checkpointing
    if found > plan.micro_batch_sequences:
        need = memory_need(
            shape, filled, "bf16", gradient_checkpointing=checkpointing, device=device
        )
        assert need.fits(device)


@pytest.mark.parametrize("engine", ["torch", "mlx"])
@pytest.mark.parametrize(
    ("seq_len", "planned", "found"),
    [
        (1024, 8, 2),
        (1024, 1, 1),
        (2048, 8, 1),
        (4096, 1, 1),
        (256, 8, 8),
        (256, 4, 4),
        (256, 1, 4),
        (64, 1, 16),
        (64, 16, 16),
        (16, 1, 64),
    ],
)
def test_a_cpu_gets_one_to_two_thousand_tokens(engine: str, seq_len: int, planned: int, found: int):
    shape = PRESETS["25m"].model_copy(update={"seq_len": seq_len})
    plan = plan_of(shape, micro_batch_sequences=planned)
    cpu = DeviceAbilities(engine, "cpu", 64 * GIB)
    assert default_micro_batch(shape, plan, cpu, 0.0) == found


def test_a_cpu_gets_no_more_than_a_step_has_or_its_memory_holds():
    shape = PRESETS["25m"].model_copy(update={"seq_len": 64})
    plan = plan_of(shape, micro_batch_sequences=1, batch_sequences=6)
    assert default_micro_batch(shape, plan, DeviceAbilities("torch", "cpu", 64 * GIB), 0.0) == 6
    small = DeviceAbilities("torch", "cpu", 1 * GIB)
    assert 1 <= default_micro_batch(shape, plan, small, 0.0) <= 6


def test_what_people_say_is_kept():
    shape = PRESETS["25m"]
    plan = plan_of(shape)
    fixed = plan.model_copy(
        update={"options": plan.options.model_copy(update={"micro_batch": "fixed"})}
    )
    assert default_micro_batch(shape, fixed, card(80), H100_FLOPS) == 8
    assert fixed.hash() == plan.hash(), "it changes nothing that is learned"


@pytest.mark.parametrize("size", ["25m", "100m", "350m", "1b"])
def test_a_mac_never_holds_its_gpu_for_longer_than_macos_lets_it(size: str):
    shape = PRESETS[size]
    plan = plan_of(shape)
    for found in (
        default_micro_batch(shape, plan, mac(128), MAC_FLOPS),
        most_micro_batch(shape, plan, mac(128), MAC_FLOPS),
    ):
        assert found >= 1
        assert found == 1 or found * sequence_s(shape, MAC_FLOPS) <= METAL_MOST_S


def test_an_unknown_card_is_filled_too():
    shape = PRESETS["25m"]
    assert default_micro_batch(shape, plan_of(shape), card(24), 0.0) >= 8
