import psutil
import pytest

from jupiterd.hardware import host
from jupiterd.hardware.host import cpu_name, probe_host

X86 = """processor\t: 0
vendor_id\t: GenuineIntel
model\t\t: 85
model name\t: Intel(R) Xeon(R) CPU @ 2.00GHz

processor\t: 1
model name\t: Intel(R) Xeon(R) CPU @ 2.00GHz
"""
RASPBERRY = """processor\t: 0
BogoMIPS\t: 108.00
CPU part\t: 0xd0b

Revision\t: c04170
Model\t\t: Raspberry Pi 5 Model B Rev 1.0
"""


def test_the_processor_is_named_as_its_maker_does() -> None:
    assert cpu_name(X86) == "Intel(R) Xeon(R) CPU @ 2.00GHz"
    assert cpu_name(RASPBERRY) == "Raspberry Pi 5 Model B Rev 1.0"


def test_a_processor_without_a_name_has_none() -> None:
    assert cpu_name("processor\t: 0\nCPU part\t: 0xd0c\nmodel name\t:\n") == ""
    assert cpu_name("") == ""


def test_this_machine_has_cores_memory_and_a_name() -> None:
    found = probe_host()
    assert found.system in {"Linux", "Darwin"}
    assert 1 <= found.cores <= (psutil.cpu_count() or 1)
    assert 0 < found.ram_bytes <= psutil.virtual_memory().total
    assert found.cpu
    assert found.machine


class Battery:
    def __init__(self, power_plugged: bool | None) -> None:
        self.power_plugged = power_plugged


@pytest.mark.parametrize(
    ("battery", "expected"),
    [(None, True), (Battery(True), True), (Battery(False), False), (Battery(None), True)],
)
def test_only_a_battery_that_feeds_the_machine_counts_as_off_the_mains(
    monkeypatch: pytest.MonkeyPatch, battery: Battery | None, expected: bool
) -> None:
    monkeypatch.setattr(host.psutil, "sensors_battery", lambda: battery, raising=False)
    assert probe_host().on_mains is expected


def test_a_system_that_knows_no_batteries_counts_as_on_the_mains(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(host.psutil, "sensors_battery", raising=False)
    assert probe_host().on_mains
