"""Memory, work per token, and plans that fit."""

from pathlib import Path
from typing import Any

import pytest

from jupiterd.cluster.values.hardware import lent_to_gpu_bytes
from jupiterd.cycle.training.architectures import matrix_parameters, parameter_count
from jupiterd.cycle.training.engine_options import DeviceAbilities, EngineOptions
from jupiterd.cycle.training.memory import (
    MemoryNeed,
    flops_per_token,
    logit_chunk_on,
    logit_chunk_tokens,
    memory_need,
    needs_on,
    options_on,
    plan_that_fits,
)
from jupiterd.cycle.training.plan import ModelShape, TrainPlan, derive, parse_model
from jupiterd.cycle.training.rank_memory import RESERVED_SHARE, first_that_fits
from jupiterd.cycle.training.size_refusal import RefusedSize, size_refusal
from jupiterd.errors import TooLargeForDeviceError

MODELS = Path(__file__).parents[4] / "config" / "models"
PRESETS = {
    path.stem: parse_model(path.read_text(encoding="utf-8")) for path in MODELS.glob("*.yaml")
}
GB = 10**9


def gpu(memory_gb: int) -> DeviceAbilities:
    return DeviceAbilities("torch", "cuda", memory_gb * GB, has_bf16=True, can_compile=True)


def mac(ram_gb: int) -> DeviceAbilities:
    ram_bytes = ram_gb * GB
    lent = lent_to_gpu_bytes(ram_bytes)
    return DeviceAbilities("mlx", "gpu", lent, has_bf16=True, ram_bytes=ram_bytes)


def plan(shape: ModelShape, **options: Any) -> TrainPlan:
    return derive(shape, 1).model_copy(update={"options": EngineOptions(**options)})


@pytest.mark.parametrize(
    ("options", "precision", "bytes_each"),
    [
        ({}, "fp32", 16),
        ({}, "bf16", 18),
        ({"optimizer": "muon"}, "bf16", 14),
        ({"optimizer": "muon", "weights": "bf16"}, "bf16", 10),
    ],
)
def test_the_bytes_of_a_parameter_in_a_matrix(
    options: dict[str, Any], precision: Any, bytes_each: int
):
    shape = PRESETS["1b"]
    wider = shape.model_copy(update={"layers": shape.layers + 1})

    def kept(of: ModelShape) -> int:
        need = memory_need(of, plan(of, **options), precision, gradient_checkpointing=True)
        return need.weights + need.gradients + need.optimizer

    more = matrix_parameters(wider) - matrix_parameters(shape)
    assert (kept(wider) - kept(shape)) / more == pytest.approx(bytes_each, rel=0.001)


def test_checkpointing_keeps_one_layer_and_what_lies_between():
    shape = PRESETS["1b"]
    whole = memory_need(shape, plan(shape), "bf16", gradient_checkpointing=False)
    saving = memory_need(shape, plan(shape), "bf16", gradient_checkpointing=True)
    assert saving.activations < whole.activations / 5
    assert (saving.weights, saving.optimizer) == (whole.weights, whole.optimizer)


def test_keeping_documents_apart_takes_a_mask_of_each_sequence_but_with_flash_attn():
    shape = PRESETS["1b"]

    def activations(**options: Any) -> int:
        need = memory_need(shape, plan(shape, **options), "bf16", gradient_checkpointing=True)
        return need.activations

    more = activations(document_masks="on") - activations()
    assert more == 3 * plan(shape).micro_batch_sequences * shape.seq_len**2
    assert activations(document_masks="on", attention="flash") == activations()


def test_logits_don_t_grow_with_the_batch():
    shape = PRESETS["100m"]
    large = derive(shape, 1).model_copy(update={"micro_batch_sequences": 64})
    needs = [
        memory_need(shape, p, "bf16", gradient_checkpointing=False).logits
        for p in (derive(shape, 1), large)
    ]
    assert needs[0] == needs[1] < 0.5 * GB


@pytest.mark.parametrize(
    ("size", "sequences", "memory_gb", "tokens"),
    [
        ("100m", 64, 80, 8_192),
        ("350m", 16, 80, 16_384),
        ("1b", 8, 80, 16_384),
        ("100m", 8, 24, 4_096),
        ("100m", 8, 8, 2_048),
        ("100m", 8, 4, 1_024),
        ("25m", 8, 4, 1_024),
    ],
)
def test_a_card_with_room_takes_the_logits_of_more_tokens_at_a_time(
    size: str, sequences: int, memory_gb: int, tokens: int
):
    shape = PRESETS[size]
    asked = plan(shape).model_copy(update={"micro_batch_sequences": sequences})
    options = options_on(gpu(memory_gb), shape, asked)
    assert logit_chunk_on(gpu(memory_gb), shape, asked, options) == tokens
    assert logit_chunk_on(gpu(0), shape, asked, options) == 1024, "of an unknown size"
    assert logit_chunk_on(mac(memory_gb), shape, asked, options) == 1024
    cpu = DeviceAbilities("torch", "cpu", memory_gb * GB)
    assert logit_chunk_on(cpu, shape, asked, options) == 1024


@pytest.mark.parametrize("size", sorted(PRESETS))
@pytest.mark.parametrize("memory_gb", [4, 8, 16, 24, 48, 80, 141])
def test_larger_chunks_of_logits_are_planned_for_and_cost_no_plan_its_room(
    size: str, memory_gb: int
):
    shape, device = PRESETS[size], gpu(memory_gb)
    for checkpointing in (False, True):
        needs = [
            memory_need(shape, plan(shape), "bf16", gradient_checkpointing=checkpointing, device=d)
            for d in (gpu(0), device)
        ]
        assert needs[0].logits <= needs[1].logits
        assert needs[1].fits(device) == needs[0].fits(device)


@pytest.mark.parametrize("vocab", [257, 32_768, 65_536])
def test_small_vocabularies_keep_the_chunk_that_they_had(vocab: int):
    assert logit_chunk_tokens(vocab) == 1024


@pytest.mark.parametrize("vocab", [65_537, 128_256, 151_936, 262_208])
def test_logits_take_no_more_room_with_a_large_vocabulary(vocab: int):
    tokens = logit_chunk_tokens(vocab)
    assert 64 <= tokens < 1024
    assert tokens % 64 == 0
    assert 4 * tokens * vocab <= 256 << 20 < 4 * (tokens + 64) * vocab
    shape = PRESETS["1m"].model_copy(update={"vocab_size": vocab})
    need = memory_need(shape, plan(shape), "fp32", gradient_checkpointing=False)
    assert need.logits <= (512 << 20) + 4 * vocab * shape.hidden


def test_work_per_token_is_six_per_parameter_and_attention():
    shape = PRESETS["100m"]
    attention = 12 * 20 * 640 * 1024
    assert flops_per_token(shape) - attention == pytest.approx(6 * parameter_count(shape), rel=0.01)


@pytest.mark.parametrize(
    ("memory_gb", "changes"),
    [
        (80, ()),
        (24, ("gradient checkpointing",)),
        (16, ("gradient checkpointing", "Muon", "weights in bf16")),
    ],
)
def test_a_billion_parameters_get_a_plan_that_fits(memory_gb: int, changes: tuple[str, ...]):
    fit = plan_that_fits(PRESETS["1b"], derive(PRESETS["1b"], 1), gpu(memory_gb))
    assert fit.changes == changes
    assert fit.need.total <= memory_gb * GB * (1 - RESERVED_SHARE)
    assert fit.plan.batch_sequences == derive(PRESETS["1b"], 1).batch_sequences


def test_what_can_t_fit_is_refused_with_the_nearest_size_that_does():
    shape = PRESETS["1b"]
    with pytest.raises(TooLargeForDeviceError, match=r"1b needs 11\.1 GB .* has 8\.0 GB") as caught:
        plan_that_fits(shape, derive(shape, 1), gpu(8), list(PRESETS.values()))
    assert "0.8 GB are kept in reserve" in caught.value.message
    assert caught.value.hint == (
        "the nearest size that fits is 500m; or train on machines with 13 GB or more each"
    )


@pytest.mark.parametrize("ram_gb", [8, 16, 24, 32, 64])
def test_no_mac_is_offered_weights_that_mlx_refuses(ram_gb: int):
    device = mac(ram_gb)
    for size in ("350m", "500m", "1b"):
        try:
            fit = plan_that_fits(PRESETS[size], derive(PRESETS[size], 1), device)
        except TooLargeForDeviceError:
            continue
        assert fit.plan.options.weights == "fp32"
        assert fit.need.on_device <= device.memory_bytes * (1 - RESERVED_SHARE)
        assert fit.need.total <= device.ram_bytes * (1 - RESERVED_SHARE)
        options_on(device, PRESETS[size], fit.plan)


def test_a_refusal_names_what_macos_lends_and_each_way_out():
    long = PRESETS["500m"].model_copy(update={"seq_len": 8192})
    asked = plan(long, gradient_checkpointing="off")
    with pytest.raises(TooLargeForDeviceError) as caught:
        plan_that_fits(long, asked, mac(32), list(PRESETS.values()))
    assert "GB of what macOS lets a GPU use at the least" in caught.value.message
    assert "2.1 GB are kept in reserve" in caught.value.message
    ways = caught.value.hint.split("; or ")
    assert ways[0] == "leave --precision and --gradient-checkpointing open"
    assert ways[1] == "--seq-len 2048"
    assert ways[-1].startswith("train on machines with ")


def test_a_checkpoint_s_copy_counts_where_it_lies_beside_what_a_step_needs():
    shape, cpu = PRESETS["25m"], DeviceAbilities("torch", "cpu", 16 * GB)
    asked = plan(shape)
    short = asked.model_copy(update={"steps": 2, "keeps_trunk": False})
    slow = short.model_copy(update={"steps": 40})  # the clock may save one on its way
    whole = 12 * parameter_count(shape)
    for each, copied in ((asked, whole), (slow, whole), (short, 0)):
        need = memory_need(shape, each, "fp32", gradient_checkpointing=False, device=cpu)
        assert need.copies == copied
        assert need.total == need.on_device + need.program + need.copies
    need = memory_need(shape, asked, "fp32", gradient_checkpointing=False)
    assert (need.copies, need.program) == (0, 0), "a card has a memory of its own"


def test_a_card_without_bf16_gets_no_weights_in_bf16():
    shape = PRESETS["500m"]
    asked = plan(shape, precision="fp16")
    with pytest.raises(TooLargeForDeviceError):
        plan_that_fits(shape, asked, DeviceAbilities("torch", "cuda", 8 * GB))


def test_what_was_asked_for_stays():
    shape = PRESETS["1b"]
    fit = plan_that_fits(shape, plan(shape, gradient_checkpointing="on"), gpu(80))
    assert fit.gradient_checkpointing
    assert fit.changes == ()


@pytest.mark.parametrize("size", sorted(PRESETS))
@pytest.mark.parametrize("memory_gb", [2, 4, 8, 16, 24, 48, 80])
def test_every_plan_that_is_given_fits(size: str, memory_gb: int):
    try:
        fit = plan_that_fits(PRESETS[size], derive(PRESETS[size], 1), gpu(memory_gb))
    except TooLargeForDeviceError:
        return
    again = memory_need(
        PRESETS[size],
        fit.plan,
        "bf16",
        gradient_checkpointing=fit.gradient_checkpointing,
        device=gpu(memory_gb),
    )
    assert again == fit.need
    assert again.total <= memory_gb * GB * (1 - RESERVED_SHARE)


def test_activations_that_don_t_fit_are_computed_twice():
    shape, plan = PRESETS["1b"], derive(PRESETS["1b"], 1)
    small = DeviceAbilities("torch", "cuda", 24 * GB, has_bf16=True)
    large = DeviceAbilities("torch", "cuda", 80 * GB, has_bf16=True)
    assert options_on(small, shape, plan).gradient_checkpointing
    assert not options_on(large, shape, plan).gradient_checkpointing


def test_what_a_rank_needs_is_told_for_each_micro_batch_as_it_computes_there():
    shape, device = PRESETS["100m"], DeviceAbilities("torch", "cuda", 24 * GB, has_bf16=True)
    asked = plan(shape)
    needs = needs_on(device, shape, asked, 8)
    assert [size for size, _ in needs] == [8, 4, 2, 1]
    options = options_on(device, shape, asked)
    for size, needed in needs:
        smaller = asked.model_copy(update={"micro_batch_sequences": size})
        checkpointing = options.gradient_checkpointing
        expected = memory_need(
            shape,
            smaller,
            options.precision,
            gradient_checkpointing=checkpointing,
            device=device,
        )
        assert needed == expected.total


@pytest.mark.parametrize(
    ("free_gb", "ranks", "found"), [(9, 1, 8), (8, 1, 4), (9, 2, 4), (3, 2, None)]
)
def test_the_first_that_fits_is_taken(free_gb: int, ranks: int, found: int | None):
    needs = [(8, 8 * GB), (4, 4 * GB), (1, 2 * GB)]
    assert first_that_fits(needs, ranks, free_gb * GB, GB) == found


@pytest.mark.parametrize(
    ("gigabytes", "says"), [(0.31, "0.4"), (0.9, "1.0"), (7.12, "8.0"), (8.99, "10.0"), (9.9, "11")]
)
def test_a_hint_names_memory_that_is_enough(gigabytes: float, says: str):
    need = MemoryNeed(int(gigabytes * 1e9), 0, 0, 0, 0)
    refusal = size_refusal(RefusedSize("1m", need), gpu(1))
    assert refusal.hint == f"train on machines with {says} GB or more each"
    assert float(says) * (1 - RESERVED_SHARE) >= gigabytes
