"""Which versions of what work depends on are installed on this machine.

Owns the list and asking for them; nothing is imported for it. Doesn't know what fits together.
"""

import platform
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from jupiterd import __version__
from jupiterd.hardware.nvidia import load_nvml

PACKAGES: Final = ("torch", "transformers", "mlx", "mlx-lm")


def versions() -> dict[str, str]:
    """Return name -> version; what isn't installed is left out.

    A broken driver may hang: ask in a thread.
    """
    return dict(_versions())


def _versions() -> Iterator[tuple[str, str]]:
    yield "jupiterd", __version__
    yield "python", platform.python_version()
    yield "system", " ".join(filter(None, (platform.system(), platform.release())))
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            yield name, version(name)
    if driver := _nvidia_driver():
        yield "nvidia_driver", driver


def _nvidia_driver() -> str:
    try:
        nvml = load_nvml()
        nvml.nvmlInit()
        try:
            return str(nvml.nvmlSystemGetDriverVersion())
        finally:
            nvml.nvmlShutdown()
    except Exception:  # noqa: BLE001 - a broken driver fails in many ways
        return ""
