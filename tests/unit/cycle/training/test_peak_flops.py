import pytest

from jupiterd.cycle.training.peak_flops import TFLOPS, peak_flops_per_s, utilisation


@pytest.mark.parametrize(
    ("name", "tflops"),
    [
        ("NVIDIA GeForce RTX 4090", 165.2),
        ("NVIDIA GeForce RTX 4070 Ti SUPER", 88.2),
        ("NVIDIA GeForce RTX 4070", 58.3),
        ("NVIDIA H200", 989.4),
        ("NVIDIA H100 80GB HBM3", 989.4),
        ("NVIDIA H100 PCIe", 756.5),
        ("NVIDIA A100-SXM4-80GB", 312.0),
        ("NVIDIA L40S", 362.0),
        ("NVIDIA L4", 121.0),
        ("Tesla V100-SXM2-16GB", 125.0),
        ("Tesla T4", 65.0),
    ],
)
def test_a_gpu_is_found_by_the_name_that_its_driver_gives_it(name: str, tflops: float):
    assert peak_flops_per_s(name) == pytest.approx(tflops * 1e12)


@pytest.mark.parametrize(
    "name",
    ["", "Apple M2 Max", "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA Quadro RTX 5000 with Max-Q",
     "AMD Radeon", "NVIDIA A1000", "AMD EPYC"],
)  # fmt: skip
def test_nobody_guesses_the_peak_of_what_is_not_in_the_table(name: str):
    assert peak_flops_per_s(name) is None


def test_every_entry_is_found_by_its_own_name():
    assert all(peak_flops_per_s(f"NVIDIA {name}") == TFLOPS[name] * 1e12 for name in TFLOPS)


def test_the_share_of_the_peak_is_not_known_unless_all_of_it_is():
    assert utilisation(1000.0, 6e9, 30e12) == pytest.approx(0.2)
    assert [
        utilisation(None, 6e9, 3e13),
        utilisation(1e3, None, 3e13),
        utilisation(1e3, 6e9, None),
    ] == [None] * 3
    assert utilisation(0.0, 6e9, 3e13) == 0.0
