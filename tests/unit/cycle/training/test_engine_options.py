"""What `auto` means on each device, and what is refused there."""

from typing import Any

import pytest

from jupiterd.cycle.training.engine_options import DeviceAbilities, EngineOptions, resolve
from jupiterd.errors import UsageError

H100 = DeviceAbilities("torch", "cuda", 80 << 30, has_bf16=True, has_flash=True, can_compile=True)
T4 = DeviceAbilities("torch", "cuda", 16 << 30, can_compile=True)
CPU = DeviceAbilities("torch", "cpu", 8 << 30, can_compile=True)
METAL = DeviceAbilities("mlx", "gpu", 64 << 30, has_bf16=True)
MLX_CPU = DeviceAbilities("mlx", "cpu", 8 << 30)


@pytest.mark.parametrize(
    ("device", "precision", "compiled"),
    [
        (H100, "bf16", True),
        (T4, "fp16", True),
        (CPU, "fp32", False),
        (METAL, "bf16", False),
        (MLX_CPU, "fp32", False),
    ],
    ids=["H100", "T4", "CPU", "Metal", "MLX on a CPU"],
)
def test_auto_takes_what_the_device_is_best_at(
    device: DeviceAbilities, precision: str, compiled: bool
):
    found = resolve(EngineOptions(), device, fits=True)
    assert (found.precision, found.compile) == (precision, compiled)
    assert (found.autocast, found.scaler) == (precision != "fp32", precision == "fp16")
    assert found.attention == "sdpa"
    assert not found.gradient_checkpointing
    assert all(": " in reason for reason in found.reasons)


def test_the_line_at_the_start():
    line = resolve(EngineOptions(), T4, fits=True).line()
    assert line == "Precision fp16 | Autocast=ON | GradScaler=ON"
    apart = resolve(EngineOptions(document_masks="on"), T4, fits=True)
    assert apart.line() == f"{line} | Documents apart"


def test_what_was_asked_for_is_done_where_it_can_be():
    asked = EngineOptions(precision="fp32", attention="sdpa", compile="off")
    found = resolve(asked, H100, fits=False)
    assert (found.precision, found.compile) == ("fp32", False)
    assert found.gradient_checkpointing, "nobody asked, and it doesn't fit"
    asked = EngineOptions(gradient_checkpointing="off", attention="flash")
    found = resolve(asked, H100, fits=False)
    assert (found.gradient_checkpointing, found.attention) == (False, "flash")


@pytest.mark.parametrize(
    ("asked", "device", "words"),
    [
        ({"attention": "flash"}, T4, "no flash-attn"),
        ({"attention": "flash", "precision": "fp32"}, H100, "no fp32"),
        ({"precision": "fp16"}, METAL, "on MLX nothing is trained in fp16"),
        ({"weights": "bf16"}, METAL, "on MLX nothing is trained with weights in bf16"),
        ({"weights": "bf16", "precision": "fp16"}, H100, "weights in bf16"),
        ({"compile": "on"}, MLX_CPU, "no compiler"),
    ],
)
def test_what_the_device_can_t_do_is_refused(
    asked: dict[str, Any], device: DeviceAbilities, words: str
):
    with pytest.raises(UsageError, match=words) as caught:
        resolve(EngineOptions(**asked), device, fits=True)
    assert caught.value.hint
