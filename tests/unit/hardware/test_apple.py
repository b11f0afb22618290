import json

import pytest

from jupiterd.cluster.values.hardware import Gpu
from jupiterd.hardware import apple
from jupiterd.hardware.apple import AppleMachine, parse, probe_apple

SILICON = json.dumps(
    {
        "SPHardwareDataType": [
            {
                "_name": "hardware_overview",
                "chip_type": "Apple M2 Max",
                "machine_model": "Mac14,13",
                "machine_name": "Mac Studio",
                "number_processors": "proc 12:8:4",
                "physical_memory": "64 GB",
                "platform_UUID": "01234567-89AB-CDEF-0123-456789ABCDEF",
            }
        ],
        "SPDisplaysDataType": [
            {
                "_name": "Apple M2 Max",
                "spdisplays_mtlgpufamilysupport": "spdisplays_metal3",
                "spdisplays_vendor": "sppci_vendor_Apple",
                "sppci_bus": "spdisplays_builtin",
                "sppci_cores": "38",
                "sppci_device_type": "spdisplays_gpu",
                "sppci_model": "Apple M2 Max",
            }
        ],
    }
)
INTEL = json.dumps(
    {
        "SPHardwareDataType": [
            {"cpu_type": "6-Core Intel Core i7", "platform_UUID": "FEDCBA98"},
        ],
        "SPDisplaysDataType": [
            {"sppci_model": "AMD Radeon Pro 5300M", "spdisplays_vendor": "sppci_vendor_amd"},
            {"sppci_model": "Intel UHD Graphics 630", "spdisplays_vendor": "Intel"},
        ],
    }
)
SYSCTL = "Apple M2 Max\n68719476736\n"


def test_a_chip_of_apples_is_told_with_the_memory_it_shares() -> None:
    uuid = "01234567-89AB-CDEF-0123-456789ABCDEF-0"
    assert parse(SILICON, SYSCTL) == AppleMachine(
        "Apple M2 Max", (Gpu("Apple M2 Max", uuid, 48 << 30, "metal"),)
    )


@pytest.mark.parametrize(
    ("ram_gib", "lent_mib"), [(8, 5_461), (16, 10_922), (32, 21_845), (64, 49_152), (96, 73_728)]
)
def test_a_gpu_has_what_metal_recommends_and_no_more(ram_gib: int, lent_mib: int) -> None:
    (gpu,) = parse(SILICON, f"Apple M2 Max\n{ram_gib << 30}\n").gpus
    assert gpu.memory_bytes >> 20 == lent_mib


def test_a_limit_that_the_owner_has_set_counts() -> None:
    (gpu,) = parse(SILICON, SYSCTL, "57344\n").gpus
    assert gpu.memory_bytes == 56 << 30
    (gpu,) = parse(SILICON, SYSCTL, "0\n").gpus
    assert gpu.memory_bytes == 48 << 30


def test_an_intel_mac_has_no_gpu_that_can_be_used() -> None:
    sysctl = "Intel(R) Core(TM) i7-9750H CPU @ 2.60GHz\n17179869184\n"
    assert parse(INTEL, sysctl) == AppleMachine("Intel(R) Core(TM) i7-9750H CPU @ 2.60GHz", ())


@pytest.mark.parametrize(
    "profile",
    ["", "not json", "[]", "{}", '{"SPDisplaysDataType": [1], "SPHardwareDataType": {}}'],
)
def test_output_that_cannot_be_read_leaves_what_the_other_command_said(profile: str) -> None:
    assert parse(profile, SYSCTL) == AppleMachine("Apple M2 Max", ())


def test_nothing_at_all_leaves_nothing() -> None:
    assert parse("", "") == AppleMachine("", ())


def test_commands_that_are_missing_fail_or_hang_leave_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(apple, "TIMEOUT_S", 0.05)
    monkeypatch.setattr(apple, "PROFILER", ("/bin/sleep", "10"))
    for broken in ("/nonexistent/sysctl", "/bin/false"):
        monkeypatch.setattr(apple, "SYSCTL", (broken,))
        assert probe_apple() == AppleMachine("", ())
    assert len(caplog.records) == 4
