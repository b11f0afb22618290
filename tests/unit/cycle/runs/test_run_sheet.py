"""What is said of a run before it starts."""

import re

from jupiterd.cycle.runs.run_sheet import Accumulation, Gang, run_sheet
from jupiterd.cycle.training.engine_options import DeviceAbilities
from jupiterd.cycle.training.memory import (
    checkpoint_bytes,
    memory_need,
    options_on,
    with_snapshots,
)
from jupiterd.cycle.training.plan import derive
from tests.unit.cycle.training.test_memory import PRESETS

M4 = DeviceAbilities("mlx", "gpu", 10_700_000_000, has_bf16=True, ram_bytes=16 * 10**9)
H100 = DeviceAbilities("torch", "cuda", 80 * 10**9, has_bf16=True, can_compile=True)


def sheet(size: str, gang: Gang, *, is_open: bool = False) -> list[str]:
    shape, plan = PRESETS[size], derive(PRESETS[size], 1)
    options = options_on(H100, shape, plan)
    need = memory_need(
        shape, plan, options.precision, gradient_checkpointing=options.gradient_checkpointing
    )
    return run_sheet(shape, plan, options, need, gang, is_open=is_open)


def test_while_the_batch_is_open_tokens_and_time_are_the_most_that_there_may_be():
    *_, batch, expectation = sheet("1b-8gpu", Gang(8, 80 * 10**9, 8 * 300e12), is_open=True)
    assert batch.startswith("Effective batch at most 24 x 4 x 8 = 768 sequences")
    assert batch.endswith("; 25,400 steps, at most 19,975.4 million tokens")
    assert expectation == "Expected 365,392 tokens/s, done in at most 15 h 11 min"


def test_the_sheet_of_an_eight_gpu_plan():
    assert sheet("1b-8gpu", Gang(8, 80 * 10**9, 8 * 300e12)) == [
        (
            "Model 1b-8gpu: d_model=2048, layers=20, heads=16, seq_len=1024, vocabulary 32,768, "
            "1,010.9 million parameters"
        ),
        "Precision bf16 | Autocast=ON | GradScaler=OFF | AdamW | weights fp32",
        "precision bf16: as asked",
        "gradient checkpointing off: the activations fit",
        "attention sdpa: torch's own kernels",
        "compile on: kernels for this cuda device",
        (
            "Memory per device 65.71 of 80.0 GB: weights 6.07, gradients 4.04, optimizer 8.09, "
            "activations 46.97, logits 0.54"
        ),
        (
            "Effective batch 24 x 4 x 8 = 768 sequences (micro-batch x accumulation x ranks), "
            "786,432 tokens; 25,400 steps, 19,975.4 million tokens"
        ),
        "Expected 365,392 tokens/s, done in 15 h 11 min",
    ]


def test_on_a_mac_both_of_its_limits_are_told():
    shape, asked = PRESETS["25m"], derive(PRESETS["25m"], 1)
    need = memory_need(shape, asked, "bf16", gradient_checkpointing=False, device=M4)
    options = options_on(M4, shape, asked)
    gang = Gang(1, M4.memory_bytes, 0.0, M4.ram_bytes)
    told = next(line for line in run_sheet(shape, asked, options, need, gang) if "Memory" in line)
    assert told.startswith(f"Memory per device {need.on_device / 1e9:.2f} of 10.7 GB: weights ")
    assert told.endswith(
        f"; {need.total / 1e9:.2f} of the machine's 16.0 GB with program 0.42, "
        f"a checkpoint's copy {need.copies / 1e9:.2f}"
    )


def test_the_plans_for_eight_gpus_are_what_they_are_called():
    products = {
        size: str(Accumulation.of(derive(PRESETS[size], 1), 8)) for size in ("100m-8gpu", "1b-8gpu")
    }
    assert products == {"100m-8gpu": "64 x 2 x 8 = 1,024", "1b-8gpu": "24 x 4 x 8 = 768"}


def test_ranks_that_don_t_divide_the_batch_hold_it_all_the_same():
    assert str(Accumulation.of(derive(PRESETS["1m"], 1), 3)) == "2 x 1 x 3, not all full: 4"


def test_a_speed_that_nobody_knows_is_not_made_up():
    said = sheet("100m", Gang(1, 0, 0.0))
    assert said[-1].startswith("Expected speed isn't known yet: not all of these devices were")
    assert " of " not in said[-3].partition(":")[0]


def alone(size: str, memory_bytes: int, flops_per_s: float) -> list[str]:
    """Return the sheet of a machine that trains by itself on its CPU."""
    shape, asked = PRESETS[size], derive(PRESETS[size], 1)
    device = DeviceAbilities("torch", "cpu", memory_bytes)
    need = memory_need(shape, asked, "fp32", gradient_checkpointing=False, device=device)
    need = with_snapshots(need, shape, asked, device)
    options = options_on(device, shape, asked)
    return run_sheet(shape, asked, options, need, Gang(1, memory_bytes, flops_per_s))


def test_a_machine_alone_is_told_what_deaths_cost() -> None:
    end = "; if its machine dies, at most 30 s of training (checkpoint_every_s)"
    assert alone("25m", 24 * 10**9, 5e10)[-4] == f"If its worker dies it loses at most a step{end}"
    (steps,) = re.findall(r"loses at most (\d+) steps;", alone("25m", 24 * 10**9, 1e13)[-4])
    assert int(steps) > 1, "a quick device takes steps that are short beside a copy"
    assert "as many steps as" in alone("25m", 24 * 10**9, 0.0)[-4]
    assert not any("dies" in line for line in sheet("1b-8gpu", Gang(8, 80 * 10**9, 8 * 300e12)))


def test_copies_of_the_state_are_counted_where_they_fit_and_left_out_elsewhere() -> None:
    roomy, tight = alone("25m", 24 * 10**9, 5e10), alone("25m", 10**9, 5e10)
    state = checkpoint_bytes(PRESETS["25m"], derive(PRESETS["25m"], 1).options)
    assert any(f"copies of the state {2 * state / 1e9:.2f}" in line for line in roomy)
    assert not any("copies of the state 0" in line for line in tight)
    assert "no room for copies of the state" in tight[-4]
