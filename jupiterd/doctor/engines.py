"""Do torch and MLX work here, and do they fit the driver?

Owns the findings about their reports (`engine_reports`) and the driver's (`nvidia_driver`).
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from jupiterd.doctor.engine_reports import EngineReport, engine_report
from jupiterd.doctor.examined_machine import ExaminedMachine
from jupiterd.doctor.finding import Finding, fail, not_here, ok, warn
from jupiterd.doctor.nvidia_driver import DriverReading as Driver
from jupiterd.doctor.nvidia_driver import read as read_driver
from jupiterd.formats import counted
from jupiterd.hardware import cuda_drivers
from jupiterd.locations import pip_install
from jupiterd.processes.openblas import openblas

TORCH: Final = "torch"
NCCL: Final = "nccl"
MLX: Final = "mlx"
OLDEST_MLX: Final = (0, 32, 1)
"""In older versions, a ring hangs forever if one of its nodes dies."""


@dataclass(frozen=True)
class EngineReading:
    """The reports of the driver and of both engines."""

    system: str
    machine: str
    driver: Driver
    torch: EngineReport
    mlx: EngineReport
    has_openblas: bool = True


def read(machine: ExaminedMachine) -> EngineReading:
    """Return the driver's report and both engines', each from a separate process."""
    import platform

    driver = read_driver(machine)
    with ThreadPoolExecutor(2) as pool:
        torch = pool.submit(engine_report, TORCH, driver.uuids)
        mlx = pool.submit(engine_report, MLX)
        return EngineReading(
            machine.system,
            platform.machine(),
            driver,
            torch.result(),
            mlx.result(),
            openblas() is not None,
        )


def judge(reading: EngineReading) -> list[Finding]:
    """Return a finding each for torch, NCCL and MLX, and one more if no engine is installed."""
    found = [judge_torch(reading), judge_nccl(reading), judge_mlx(reading)]
    if reading.torch.get("missing") and reading.mlx.get("missing"):
        extra = "mac" if reading.system == "Darwin" else "nvidia" if reading.driver.gpus else "cpu"
        why = "neither torch nor MLX is installed: this machine can't train or generate by itself"
        found.append(fail("engines", why, pip_install(f"jupiterd[{extra}]")))
    return found


def judge_torch(reading: EngineReading) -> Finding:
    """Return the finding about torch: whether it works and was built for this machine's GPUs."""
    torch, driver = reading.torch, reading.driver
    if torch.get("missing"):
        return not_here(TORCH, "torch isn't installed")
    if error := torch.get("error") or torch.get("error_of_sum"):
        return fail(TORCH, f"torch doesn't work: {error}", _again(reading, "torch"))
    version, built = torch["version"], torch.get("built_for_cuda")
    if not driver.gpus:
        build = f"built for CUDA {built}" if built else "built for CPUs"
        return ok(TORCH, f"torch {version}, {build}; no NVIDIA GPU is here to use")
    if not built:
        why = f"torch {version} was built without CUDA, so {driver.gpus[0]} isn't used"
        release = version.partition("+")[0]
        return fail(TORCH, why, pip_install("--force-reinstall", f"torch=={release}"))
    return _judge_driver(version, built, driver) or _judge_devices(torch)


def _judge_driver(version: str, built: str, driver: Driver) -> Finding | None:
    """Return what fails where the driver is too old for the CUDA that torch is built for."""
    if not cuda_drivers.runs(driver.driver, built):
        lacks, fix = cuda_drivers.too_old(driver.driver, built)
        return fail(TORCH, f"torch {version} is built for CUDA {built}: {lacks}", fix)
    if _major(built) > _major(driver.cuda):
        why = f"torch {version} needs CUDA {built}, and driver {driver.driver} knows {driver.cuda}"
        return fail(
            TORCH, why, "install a newer driver, or a torch that was built for an older CUDA"
        )
    return None


def _judge_devices(torch: EngineReport) -> Finding:
    version = torch["version"]
    if not torch["is_usable"]:
        why = f"torch {version} can't use the GPU: {torch.get('why_not') or 'it does not say why'}"
        return fail(TORCH, why, "nvidia-smi; is CUDA_VISIBLE_DEVICES set to something odd?")
    for device in torch["devices"]:
        name = device["name"]
        if not _is_built_for(device["capability"], torch["architectures"]):
            needed = "sm_{}{}".format(*device["capability"])
            why = f"torch {version} has no code for {name} ({needed})"
            return fail(TORCH, why, "install a torch that was built for this GPU: pytorch.org")
        if error := device.get("error_of_sum"):
            return fail(TORCH, f"{name} doesn't multiply as it should: {error}", "nvidia-smi -q")
    count = len(torch["devices"])
    used = counted(count, "GPU")
    return ok(TORCH, f"torch {version}, built for CUDA {torch['built_for_cuda']}, uses {used}")


def judge_nccl(reading: EngineReading) -> Finding:
    """Return the finding about NCCL, with which gangs of GPUs sum their gradients."""
    torch = reading.torch
    if not reading.driver.gpus or not torch.get("is_usable"):
        return not_here(NCCL, "there is no GPU that torch can use")
    gloo = "gangs sum over gloo instead, which is slower"
    if not torch.get("has_nccl"):
        return warn(NCCL, f"this torch was built without NCCL: {gloo}", _again(reading, "torch"))
    if error := torch.get("nccl_error"):
        fix = "set NCCL_DEBUG=INFO for jupiterd, and read the rank's log"
        return warn(NCCL, f"NCCL {torch.get('nccl')} doesn't work ({error}): {gloo}", fix)
    return ok(NCCL, f"NCCL {torch.get('nccl')}")


def judge_mlx(reading: EngineReading) -> Finding:
    """Return the finding about MLX: whether it works, and uses Metal if there is any."""
    mlx = reading.mlx
    is_apple = reading.system == "Darwin" and reading.machine == "arm64"
    if mlx.get("missing"):
        if is_apple:
            why = "MLX isn't installed, which is what trains on Apple chips"
            return warn(MLX, why, pip_install("jupiterd[mac]"))
        return not_here(MLX, "MLX isn't installed")
    if error := mlx.get("error") or mlx.get("error_of_sum"):
        return fail(MLX, f"MLX doesn't work: {error}", _again(reading, "mlx"))
    return _judge_mlx_build(reading, mlx["version"], is_apple=is_apple)


def _judge_mlx_build(reading: EngineReading, version: str, *, is_apple: bool) -> Finding:
    mlx = reading.mlx
    if _numbers(version) < OLDEST_MLX:
        why = f"MLX {version} is too old: a ring hangs when one of its nodes dies"
        return fail(MLX, why, pip_install("mlx>=0.32.1"))
    if not mlx.get("mlx_lm"):
        return warn(MLX, f"MLX {version} is here without mlx-lm", pip_install("mlx-lm>=0.32.2"))
    if is_apple and not mlx.get("metal"):
        why = f"MLX {version} doesn't see Metal: it would compute on the CPU"
        return fail(MLX, why, "use a Python for arm64 (not under Rosetta), outside of containers")
    if reading.system == "Linux" and not reading.has_openblas:
        why = f"MLX {version} multiplies about forty times slower without OpenBLAS"
        return warn(MLX, why, "sudo apt-get install libopenblas0-pthread")
    return ok(MLX, f"MLX {version} on {'Metal' if mlx.get('metal') else 'the CPU'}")


def _again(reading: EngineReading, package: str) -> str:
    version = (reading.torch if package == "torch" else reading.mlx).get("version", "")
    wanted = f"{package}=={str(version).partition('+')[0]}" if version else package
    return pip_install("--force-reinstall", wanted)


def _is_built_for(capability: list[int], architectures: list[str]) -> bool:
    """Return whether there is code for a GPU: its own, or an older one's that also runs on it."""
    major, minor = capability
    for name in architectures:
        kind, _, number = name.partition("_")
        digits = "".join(filter(str.isdecimal, number))
        if not digits:
            continue
        has_major, has_minor = int(digits[:-1] or 0), int(digits[-1])
        if kind == "compute" and (has_major, has_minor) <= (major, minor):
            return True  # PTX: the driver compiles it for newer GPUs
        if kind == "sm" and has_major == major and has_minor <= minor:
            return True
    return not architectures


def _major(version: str) -> int:
    return _numbers(version)[0]


def _numbers(version: str) -> tuple[int, ...]:
    parts = version.partition("+")[0].split(".")
    return tuple(int(part) if part.isdecimal() else 0 for part in parts)
