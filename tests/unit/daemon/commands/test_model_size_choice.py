"""What machines can do together, as far as their names tell."""

from jupiterd.cluster.values.hardware import Gpu, Hardware
from jupiterd.daemon.commands.model_size_choice import power_of, size_for_data
from jupiterd.daemon.planning.device_speed import CORE_FLOPS_PER_S

CPU = Hardware("Linux", "x86_64", "cpu", 4, 16 << 30, engines=("torch",))
CARD = Gpu("NVIDIA GeForce RTX 4090", "gpu-1", 24 << 30, "cuda")
BOX = Hardware("Linux", "x86_64", "cpu", 16, 64 << 30, gpus=(CARD,), engines=("torch",))


def test_the_smallest_device_and_the_sum_of_all_count() -> None:
    power = power_of("torch", [CPU, CPU])
    assert power.smallest is not None
    assert (power.smallest.memory_bytes, power.flops_per_s) == (16 << 30, 8 * CORE_FLOPS_PER_S)
    one = power_of("torch", [BOX])
    assert one.smallest is not None
    assert (one.smallest.memory_bytes, one.smallest.kind) == (24 << 30, "cuda")
    assert one.flops_per_s > 1e13


def test_much_text_has_a_size_that_the_machines_train_within_a_day() -> None:
    assert size_for_data(600_000_000, "torch", [CPU]).size == "1m"
    assert "would take" in size_for_data(600_000_000, "torch", [CPU]).reason
    assert size_for_data(600_000_000, "torch", [BOX]).size == "100m"


def test_of_no_machines_nothing_is_known() -> None:
    assert size_for_data(600_000_000, "torch", []).size == "100m"
