"""One record of what this machine is, and the versions of what work depends on.

Owns putting the probes together; no engine is imported for its version. Doesn't know what anybody
decides from it, or which versions fit together. Takes up to ten seconds on a Mac: run it in a
thread.
"""

import platform
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import metadata
from importlib.util import find_spec
from typing import Final

from jupiterd import __version__
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.hardware.apple import AppleMachine, probe_apple
from jupiterd.hardware.cuda import with_devices
from jupiterd.hardware.host import probe_host
from jupiterd.hardware.nvidia import load_nvml, probe_nvidia

ENGINES: Final = {"torch": ("torch",), "mlx": ("mlx", "mlx_lm")}
"""Engine -> the modules it needs."""

FRAMEWORKS: Final = ("torch", "mlx")
"""Packages whose versions must be alike on machines that train together."""

PACKAGES: Final = ("torch", "transformers", "mlx", "mlx-lm")
"""Packages whose versions a node reports."""


def probe(devices: Sequence[str] = ()) -> Hardware:
    """Describe this machine, and the devices that it trains on; never fails where none are named.

    Raises:
        InvalidSettingError: a device that was named isn't there.
    """
    host = probe_host()
    apple = probe_apple() if host.system == "Darwin" else AppleMachine("", ())
    found = Hardware(
        system=host.system,
        machine=host.machine,
        cpu=apple.cpu or host.cpu,
        cores=host.cores,
        ram_bytes=host.ram_bytes,
        gpus=(*probe_nvidia(), *apple.gpus),
        engines=tuple(
            engine for engine, names in ENGINES.items() if installed(names) == tuple(names)
        ),
        on_mains=host.on_mains,
        has_bitsandbytes=bool(installed(("bitsandbytes",))),
        versions=framework_versions(),
        host=host.identity,
    )
    return with_devices(found, devices)


def framework_versions() -> tuple[tuple[str, str], ...]:
    """Return (name, version) of Jupiter and of the frameworks that are installed."""
    found = ((name, _version(name)) for name in FRAMEWORKS)
    return (("jupiterd", __version__), *((name, version) for name, version in found if version))


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def installed(names: Sequence[str]) -> tuple[str, ...]:
    """Return those that could be imported, without importing them: that would take seconds."""
    return tuple(name for name in names if find_spec(name) is not None)


def installed_versions() -> dict[str, str]:
    """Return name -> version; what isn't installed is left out.

    A broken driver may hang: ask in a thread.
    """
    return dict(_installed_versions())


def _installed_versions() -> Iterator[tuple[str, str]]:
    yield "jupiterd", __version__
    yield "python", platform.python_version()
    yield "system", " ".join(filter(None, (platform.system(), platform.release())))
    for name in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            yield name, metadata.version(name)
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
