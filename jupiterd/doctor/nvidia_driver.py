"""Does the NVIDIA driver work, and do its kernel module and library match?

Owns reading the kernel's and the driver library's state, and the finding. Doesn't know torch.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jupiterd.doctor.examined_machine import ExaminedMachine
from jupiterd.doctor.finding import Finding, fail, not_here, ok, warn
from jupiterd.hardware.nvidia import load_nvml

CHECK: Final = "nvidia"
DEVICES: Final = Path("/sys/bus/pci/devices")
KERNEL_MODULE: Final = Path("/proc/driver/nvidia/version")
VENDOR: Final = "0x10de"
DISPLAY_CLASSES: Final = ("0x0300", "0x0302")
WSL_LIBRARY: Final = Path("/usr/lib/wsl/lib/libnvidia-ml.so.1")


@dataclass(frozen=True)
class DriverReading:
    """The cards on the bus, the kernel module, and NVML's answers."""

    cards: int = 0
    """NVIDIA cards on the PCI bus; -1: the bus can't be read."""
    has_module: bool = False
    driver: str = ""
    """The driver's version; empty: NVML doesn't answer."""
    cuda: str = ""
    """The newest CUDA version that this driver supports."""
    gpus: tuple[str, ...] = ()
    uuids: tuple[str, ...] = ()
    error: str = ""
    """Why NVML doesn't answer; empty: it does."""


def read(machine: ExaminedMachine) -> DriverReading:
    """Return the state of the bus and of the driver's library."""
    if machine.system != "Linux":
        return DriverReading()
    cards, has_module = _cards(), KERNEL_MODULE.exists() or WSL_LIBRARY.exists()
    try:
        nvml = load_nvml()
        nvml.nvmlInit()
    except Exception as error:  # noqa: BLE001 - a broken driver fails in many ways
        return DriverReading(cards, has_module, error=str(error))
    try:
        return _working_driver(nvml, cards)
    except Exception as error:  # noqa: BLE001
        return DriverReading(cards, has_module, error=str(error))
    finally:
        nvml.nvmlShutdown()


def judge(reading: DriverReading) -> Finding:
    """Return the finding about the driver."""
    if reading.driver and reading.gpus:
        listed = ", ".join(reading.gpus)
        return ok(CHECK, f"driver {reading.driver} (CUDA {reading.cuda}), {listed}")
    if reading.driver:
        fix = "nvidia-smi -L; in a container: start it with --gpus all"
        return warn(CHECK, f"driver {reading.driver} is loaded, and shows no GPU", fix)
    if "mismatch" in reading.error.lower():
        why = "the driver was upgraded while the old one was loaded (NVML: version mismatch)"
        return fail(CHECK, why, "start this machine again")
    if reading.has_module:
        why = f"the driver is loaded, and its library doesn't answer: {reading.error}"
        return fail(CHECK, why, "nvidia-smi; install the driver's own libnvidia-ml")
    if reading.cards > 0:
        why = "there is an NVIDIA GPU, and no driver for it is loaded"
        return warn(CHECK, why, "install NVIDIA's driver for this system, then: nvidia-smi")
    return not_here(CHECK, "there is no NVIDIA GPU")


def _working_driver(nvml: Any, cards: int) -> DriverReading:  # noqa: ANN401 - an untyped library
    handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
    cuda = int(nvml.nvmlSystemGetCudaDriverVersion())
    return DriverReading(
        cards,
        has_module=True,
        driver=str(nvml.nvmlSystemGetDriverVersion()),
        cuda=f"{cuda // 1000}.{cuda % 1000 // 10}",
        gpus=tuple(str(nvml.nvmlDeviceGetName(handle)) for handle in handles),
        uuids=tuple(str(nvml.nvmlDeviceGetUUID(handle)) for handle in handles),
    )


def _cards() -> int:
    try:
        found = list(DEVICES.iterdir())
    except OSError:
        return -1
    return sum(
        _text(device / "vendor") == VENDOR and _text(device / "class").startswith(DISPLAY_CLASSES)
        for device in found
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
