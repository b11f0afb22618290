"""One record of what this machine is.

Owns putting the probes together. Doesn't know what anybody decides from it. Takes up to ten seconds
on a Mac: run it in a thread.
"""

from collections.abc import Sequence
from importlib import metadata
from importlib.util import find_spec
from typing import Final

from jupiterd import __version__
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.hardware.apple import AppleMachine, probe_apple
from jupiterd.hardware.cuda import with_devices
from jupiterd.hardware.host import probe_host
from jupiterd.hardware.nvidia import probe_nvidia

ENGINES: Final = {"torch": ("torch",), "mlx": ("mlx", "mlx_lm")}
"""Engine -> the modules it needs."""

FRAMEWORKS: Final = ("torch", "mlx")
"""Packages whose versions must be alike on machines that train together."""


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
        versions=versions(),
        host=host.identity,
    )
    return with_devices(found, devices)


def versions() -> tuple[tuple[str, str], ...]:
    """Return (name, version) of Jupiter and of the frameworks that are installed."""
    told = ((name, _version(name)) for name in FRAMEWORKS)
    return (("jupiterd", __version__), *((name, told) for name, told in told if told))


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def installed(names: Sequence[str]) -> tuple[str, ...]:
    """Return those that could be imported, without importing them: that would take seconds."""
    return tuple(name for name in names if find_spec(name) is not None)
