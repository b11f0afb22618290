"""Which CUDA devices torch can use, without importing it."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from jupiterd.cluster.planning.roles import estimated_speed
from jupiterd.cluster.values.hardware import Gpu, Hardware
from jupiterd.daemon.planning.machine_devices import device_of
from jupiterd.errors import InvalidSettingError
from jupiterd.hardware import cuda
from jupiterd.hardware.cuda import usable_cuda_devices, with_devices

GPU = Gpu("RTX 4090", "GPU-1", 24 << 30, "cuda")
MACHINE = Hardware("Linux", "x86_64", "a CPU", 8, 16 << 30, (GPU, GPU))


@pytest.fixture
def torch(tmp_path: Path) -> Path:
    (tmp_path / "version.py").write_text("debug = False\ncuda: Optional[str] = '12.8'\n")
    return tmp_path


@pytest.mark.parametrize(
    ("environment", "devices"),
    [
        ({}, 4),
        ({"CUDA_VISIBLE_DEVICES": ""}, 0),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, 0),
        ({"CUDA_VISIBLE_DEVICES": "3, 1"}, 2),
        ({"CUDA_VISIBLE_DEVICES": "GPU-8932f937"}, 1),
    ],
)
def test_a_torch_for_cuda_uses_what_is_visible(
    torch: Path, environment: dict[str, str], devices: int
) -> None:
    assert usable_cuda_devices(4, environment, torch) == devices


@pytest.mark.parametrize("text", ["cuda: Optional[str] = None\n", "hip = '6.0'\n", ""])
def test_a_torch_for_cpus_uses_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "version.py").write_text(text)
    assert usable_cuda_devices(4, {}, tmp_path) == 0
    assert usable_cuda_devices(4, {}, tmp_path / "missing") == 0


def test_torch_is_not_imported_to_find_out() -> None:
    code = "import sys; from jupiterd.hardware.cuda import *; usable_cuda_devices(1)"
    code += "; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


@pytest.mark.parametrize("wanted", [("cpu",), ("cpu", "cpu")])
def test_where_the_owner_wants_the_cpu_alone_no_gpu_is_told(
    torch: Path, monkeypatch: pytest.MonkeyPatch, wanted: tuple[str, ...]
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(cuda, "_folder", lambda: torch)
    found = with_devices(replace(MACHINE, engines=("torch",)), wanted)
    assert (found.gpus, found.devices, found.engines) == ((), wanted, ("torch",))
    assert estimated_speed(found) == MACHINE.cores, "nobody plans with what isn't offered"
    assert device_of("torch", found).kind == "cpu"
    assert with_devices(MACHINE, ("cpu", "0")).gpus == (GPU, GPU), "one of them is offered"


def test_a_mac_whose_owner_wants_the_cpu_alone_has_no_mlx() -> None:
    chip = Gpu("Apple M4", "X-0", 16 << 30, "metal")
    mac = Hardware("Darwin", "arm64", "Apple M4", 10, 16 << 30, (chip,), ("torch", "mlx"))
    found = with_devices(mac, ("cpu",))
    assert (found.gpus, found.engines) == ((), ("torch",)), "MLX computes on the GPU there"
    assert with_devices(mac, ()).gpus == (chip,)


def test_a_gpu_that_torch_cant_use_counts_for_nothing() -> None:
    idle = replace(MACHINE, engines=("torch",), devices=("cpu",))
    assert estimated_speed(idle) == idle.cores
    assert device_of("torch", idle).kind == "cpu"
    assert device_of("torch", replace(idle, devices=("cuda:0",))).kind == "cuda"


def test_a_device_that_is_not_there_is_refused_with_its_setting(
    torch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(cuda, "_folder", lambda: torch)
    assert with_devices(MACHINE, ()).devices == ("cuda:0", "cuda:1")
    with pytest.raises(InvalidSettingError, match="devices: there is no CUDA device 2") as refused:
        with_devices(MACHINE, ("2",))
    assert "--devices cpu" in refused.value.hint
