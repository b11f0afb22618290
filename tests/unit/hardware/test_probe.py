import subprocess
import sys

import pytest

from jupiterd.cluster.values.hardware import Gpu, Hardware
from jupiterd.hardware import probe as module
from jupiterd.hardware.apple import AppleMachine
from jupiterd.hardware.host import Host
from jupiterd.hardware.probe import installed, probe

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
