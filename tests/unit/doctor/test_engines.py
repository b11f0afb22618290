"""What follows from what drivers, torch and MLX say."""

import shlex
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from jupiterd.doctor import engine_reports, nvidia_driver
from jupiterd.doctor.engines import EngineReading, judge, judge_mlx, judge_nccl, judge_torch
from jupiterd.doctor.finding import Status
from jupiterd.doctor.nvidia_driver import DriverReading as Driver
from jupiterd.processes.device_locks import device_locked

NONE_HERE = Driver()
DRIVER = Driver(1, True, "580.65.06", "13.0", ("NVIDIA RTX 4090",), ("GPU-1",))
CPU_TORCH: dict[str, Any] = {
    "version": "2.13.0+cpu",
    "built_for_cuda": None,
    "is_usable": False,
    "architectures": [],
    "has_nccl": False,
    "devices": [],
}
DEVICE = {"name": "NVIDIA RTX 4090", "capability": [8, 9], "error_of_sum": None}
CUDA_TORCH = CPU_TORCH | {
    "version": "2.13.0+cu130",
    "built_for_cuda": "13.0",
    "is_usable": True,
    "architectures": ["sm_75", "sm_80", "sm_90", "compute_120"],
    "has_nccl": True,
    "nccl": "2.29.7",
    "nccl_error": None,
    "devices": [DEVICE],
}
CPU_MLX: dict[str, Any] = {"version": "0.32.4", "mlx_lm": "0.32.2", "metal": False}
MISSING = {"missing": True}
LINUX = EngineReading("Linux", "x86_64", NONE_HERE, CPU_TORCH, CPU_MLX)
WITH_GPU = replace(LINUX, driver=DRIVER, torch=CUDA_TORCH)
MAC = EngineReading("Darwin", "arm64", NONE_HERE, CPU_TORCH, CPU_MLX | {"metal": True})


def test_a_machine_without_a_gpu_is_well_with_torch_for_cpus():
    torch, nccl, mlx = judge(LINUX)
    assert [torch.status, nccl.status, mlx.status] == [Status.OK, Status.NOT_HERE, Status.OK]


def test_a_machine_with_a_gpu_is_well_when_everything_fits():
    torch, nccl, _ = judge(WITH_GPU)
    assert torch.why == "torch 2.13.0+cu130, built for CUDA 13.0, uses 1 GPU"
    assert nccl.why == "NCCL 2.29.7"


@pytest.mark.parametrize(
    ("torch", "why"),
    [
        (CPU_TORCH, "torch 2.13.0+cpu was built without CUDA, so NVIDIA RTX 4090 isn't used"),
        (CUDA_TORCH | {"built_for_cuda": "14.1"}, "needs CUDA 14.1, and driver 580.65.06 knows"),
        (CUDA_TORCH | {"is_usable": False, "why_not": "CUDA error 804"}, "CUDA error 804"),
        (CUDA_TORCH | {"architectures": ["sm_90", "compute_90"]}, "has no code for NVIDIA RTX 40"),
        (CUDA_TORCH | {"devices": [DEVICE | {"error_of_sum": "Xid 79"}]}, "Xid 79"),
        ({"error": "libcudart.so.13 is missing"}, "libcudart.so.13"),
    ],
)
def test_a_torch_that_does_not_fit_its_gpu_fails_with_a_fix(torch: dict[str, Any], why: str):
    found = judge_torch(replace(WITH_GPU, torch=torch))
    assert found.status is Status.FAIL
    assert why in found.why
    assert found.fix


def test_a_driver_that_is_too_old_for_its_torch_is_told_what_to_install():
    driver = replace(DRIVER, driver="535.183.01", cuda="12.2")
    found = judge_torch(replace(WITH_GPU, driver=driver, torch=CUDA_TORCH | {"is_usable": False}))
    assert found.status is Status.FAIL
    assert found.why == (
        "torch 2.13.0+cu130 is built for CUDA 13.0: "
        "CUDA 13 needs driver 580 or newer, and driver 535 runs CUDA 12"
    )
    assert found.fix == "install with `--cuda 12`, or install driver 580 or newer"
    older = CUDA_TORCH | {"version": "2.13.0+cu126", "built_for_cuda": "12.6"}
    assert judge_torch(replace(WITH_GPU, driver=driver, torch=older)).status is Status.OK


def test_an_older_minor_version_of_cuda_in_the_driver_will_do():
    torch = CUDA_TORCH | {"built_for_cuda": "13.2"}
    assert judge_torch(replace(WITH_GPU, torch=torch)).status is Status.OK


def test_code_that_the_driver_can_translate_runs_on_newer_gpus():
    newer = CUDA_TORCH | {"devices": [DEVICE | {"capability": [12, 1]}]}
    assert judge_torch(replace(WITH_GPU, torch=newer)).status is Status.OK


@pytest.mark.parametrize(
    "torch", [CUDA_TORCH | {"has_nccl": False}, CUDA_TORCH | {"nccl_error": "no socket interface"}]
)
def test_without_nccl_gangs_go_on_and_people_are_told(torch: dict[str, Any]):
    found = judge_nccl(replace(WITH_GPU, torch=torch))
    assert found.status is Status.WARN
    assert "gloo" in found.why


@pytest.mark.parametrize(
    ("reading", "status"),
    [
        (MAC, Status.OK),
        (replace(MAC, mlx=CPU_MLX), Status.FAIL),
        (replace(MAC, mlx=MISSING), Status.WARN),
        (replace(LINUX, mlx=MISSING), Status.NOT_HERE),
        (replace(LINUX, mlx=CPU_MLX | {"version": "0.32.0"}), Status.FAIL),
        (replace(LINUX, mlx=CPU_MLX | {"mlx_lm": None}), Status.WARN),
        (replace(LINUX, mlx=CPU_MLX | {"error_of_sum": "4 instead of 5"}), Status.FAIL),
        (replace(LINUX, mlx={"error": "glibc"}), Status.FAIL),
        (replace(LINUX, has_openblas=False), Status.WARN),
    ],
)
def test_mlx_on_a_mac_and_elsewhere(reading: EngineReading, status: Status):
    assert judge_mlx(reading).status is status


@pytest.mark.parametrize(
    ("reading", "extra"),
    [(LINUX, "[cpu]"), (WITH_GPU, "[nvidia]"), (replace(LINUX, system="Darwin"), "[mac]")],
)
def test_a_machine_without_any_engine_is_told_what_to_install(reading: EngineReading, extra: str):
    *_, found = judge(replace(reading, torch=MISSING, mlx=MISSING))
    assert found.status is Status.FAIL
    assert found.fix == f"{shlex.quote(sys.executable)} -m pip install 'jupiterd{extra}'"


@pytest.mark.parametrize(
    ("reading", "status"),
    [
        (DRIVER, Status.OK),
        (NONE_HERE, Status.NOT_HERE),
        (Driver(1), Status.WARN),
        (Driver(1, True, "580.65.06", "13.0"), Status.WARN),
        (Driver(1, True, error="NVML: Driver/library version mismatch"), Status.FAIL),
        (Driver(1, True, error="Unknown Error"), Status.FAIL),
    ],
)
def test_the_driver(reading: Driver, status: Status):
    assert nvidia_driver.judge(reading).status is status


@pytest.mark.parametrize("engine", ["torch", "mlx"])
def test_an_engine_answers_from_a_process_of_its_own(engine: str):
    answer = engine_reports.engine_report(engine)
    assert answer["version"]
    assert answer["error_of_sum"] is None


@pytest.mark.parametrize(
    ("program", "word"),
    [
        ("import os; os.kill(os.getpid(), 11)", "ended by signal 11"),
        ("raise SystemExit('no such symbol')", "ended with 1: no such symbol"),
    ],
)
def test_a_library_that_crashes_takes_only_its_process_with_it(
    monkeypatch, tmp_path, program, word
):
    (tmp_path / "crashing.py").write_text(program)
    monkeypatch.setattr(engine_reports, "MODULE", "crashing")
    monkeypatch.setattr(
        engine_reports, "worker_environment", lambda *_: {"PYTHONPATH": str(tmp_path)}
    )
    assert word in engine_reports.engine_report("torch")["error"]


async def test_nothing_is_computed_on_a_gpu_that_a_gang_holds(monkeypatch, tmp_path):
    asked: list[str] = []

    def run(command: list[str], **_: object) -> object:
        asked.append(command[-1])
        return subprocess.CompletedProcess(command, 0, "{}", "")

    monkeypatch.setattr(engine_reports.device_locks, "FOLDER", tmp_path)
    monkeypatch.setattr(engine_reports.nvidia, "free_bytes", lambda _: engine_reports.ROOM_BYTES)
    monkeypatch.setattr(engine_reports.subprocess, "run", run)
    engine_reports.engine_report("torch", ["GPU-1", "GPU-2"])
    async with device_locked("GPU-2", "a gang of alpha", tmp_path):
        engine_reports.engine_report("torch", ["GPU-1", "GPU-2"])
    assert asked == ["compute", "look"]


def test_a_library_that_hangs_is_given_up(monkeypatch):
    monkeypatch.setattr(engine_reports, "TIMEOUT_S", 0.0)
    assert "no answer" in engine_reports.engine_report("torch")["error"]
