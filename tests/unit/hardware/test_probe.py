import platform
import subprocess
import sys

import pytest

from jupiterd import __version__
from jupiterd.cluster.values.hardware import Gpu, Hardware
from jupiterd.hardware import probe as module
from jupiterd.hardware.apple import AppleMachine
from jupiterd.hardware.host import Host
from jupiterd.hardware.probe import installed, installed_versions, probe

PROBING = """
import sys
from jupiterd.hardware.probe import probe
probe()
print("torch" in sys.modules, "mlx" in sys.modules)
"""


def test_this_machine_gives_a_record_that_survives_the_wire() -> None:
    found = probe()
    assert Hardware.from_plain(found.to_plain()) == found


def test_engines_are_found_without_being_imported() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROBING], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "False"]
    assert installed(["json", "no_such_engine"]) == ("json",)


def test_a_mac_is_asked_in_the_way_of_macs(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Gpu("Apple M4", "X-0", 16 << 30, "metal")
    host = Host("Darwin", "arm64", "arm", 10, 16 << 30, on_mains=False)
    monkeypatch.setattr(module, "probe_host", lambda: host)
    monkeypatch.setattr(module, "probe_apple", lambda: AppleMachine("Apple M4", (gpu,)))
    monkeypatch.setattr(module, "probe_nvidia", lambda: ())
    found = probe()
    assert (found.cpu, found.gpus, found.on_mains) == ("Apple M4", (gpu,), False)


def test_with_devices_cpu_the_driver_s_gpu_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Gpu("NVIDIA H100", "GPU-1", 80 << 30, "cuda")
    monkeypatch.setattr(module, "probe_nvidia", lambda: (gpu,))
    assert probe(("cpu",)).gpus == ()
    assert gpu in probe().gpus


def test_what_is_installed_is_told_and_nothing_else() -> None:
    found = installed_versions()
    assert found["jupiterd"] == __version__
    assert found["python"] == platform.python_version()
    assert found["system"].startswith(platform.system())
    assert all(found.values())


def test_a_package_that_is_not_installed_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PACKAGES", ("psutil", "no-such-package"))
    assert "psutil" in installed_versions()
    assert "no-such-package" not in installed_versions()


def test_the_driver_is_told_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    class Driver:
        def nvmlInit(self) -> None:  # noqa: N802
            pass

        def nvmlShutdown(self) -> None:  # noqa: N802
            pass

        def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
            return "560.35.03"

    monkeypatch.setattr(module, "load_nvml", Driver)
    assert installed_versions()["nvidia_driver"] == "560.35.03"
