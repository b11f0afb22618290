"""Where a cluster file and the machine that it speaks of disagree.

Owns what counts as a disagreement, and how it is told. Pure. What a machine measures of itself
counts; nothing here is ever taken from the file instead. Doesn't know who sees it.
"""

import re
from collections.abc import Iterator
from typing import Final

from jupiterd.cluster.planning.cluster_file_policy import ClusterFile, KnownMachine, MachineEntry
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.cluster.values.interface_kind import InterfaceKind
from jupiterd.formats import printable

TOLERANCE: Final = 0.15
"""GB for GiB is 7 %, and systems keep some of the memory for themselves."""

MAX_CHARACTERS: Final = 60
"""Of what a member says of itself."""

MAC, NVIDIA, CPU = "mac", "nvidia", "cpu"

CONNECTIONS: Final = {
    "thunderbolt": InterfaceKind.THUNDERBOLT,
    "ethernet": InterfaceKind.ETHERNET,
    "wifi": InterfaceKind.WIFI,
}

_GIB = 1 << 30
_TRADE_MARK = re.compile(r"\((r|tm)\)")
_PART = re.compile("[a-z]+|[0-9]+")

_Difference = tuple[str, str, str]
"""A key, what was measured, and what is written."""


def contradictions(
    written: ClusterFile, entry: MachineEntry, machine: KnownMachine
) -> Iterator[str]:
    """Yield a line for each thing that is written of a machine and isn't so."""
    for key, measured, stated in _differences(entry, machine):
        place = written.place(key, entry)
        is_so = printable(measured[:MAX_CHARACTERS])
        yield f"{machine.name} has {key} {is_so}, and {place} says {stated}"


def _differences(entry: MachineEntry, machine: KnownMachine) -> Iterator[_Difference]:
    if entry.name and entry.name != machine.name:
        yield "name", machine.name, entry.name
    if machine.hardware is not None:
        yield from _of_hardware(entry, machine.hardware)
    if machine.kinds and CONNECTIONS.get(entry.connection_type, None) not in {None, *machine.kinds}:
        kinds = " and ".join(kind.label for kind in sorted(machine.kinds))
        yield "connection_type", kinds, entry.connection_type


def _of_hardware(entry: MachineEntry, hardware: Hardware) -> Iterator[_Difference]:
    types = _device_types(hardware)
    if entry.device_type and entry.device_type not in types:
        yield "device_type", types[0], entry.device_type
    if entry.memory_gb is not None and not _has_memory(hardware, entry.memory_gb):
        yield "memory_gb", _memory(hardware), f"{entry.memory_gb:g}"
    chips = _chips(hardware)
    if entry.chip and chips and not any(_is_called(chip, entry.chip) for chip in chips):
        yield "chip", " and ".join(chips), entry.chip


def _device_types(hardware: Hardware) -> list[str]:
    """Return what a machine may be called; one with GPUs that trains on the CPU has two names."""
    if hardware.system == "Darwin":
        return [MAC]
    is_stated_cpu = bool(hardware.devices) and set(hardware.devices) == {CPU}
    has_cuda = any(gpu.kind == "cuda" for gpu in hardware.gpus)
    return [*([NVIDIA] if has_cuda else []), *([CPU] if is_stated_cpu or not has_cuda else [])]


def _has_memory(hardware: Hardware, stated_gib: float) -> bool:
    """Say whether it is the machine's memory, one GPU's or that of all: people write any of it."""
    of_gpus = [gpu.memory_bytes for gpu in hardware.gpus]
    measured_gib = [size / _GIB for size in (hardware.ram_bytes, *of_gpus, sum(of_gpus)) if size]
    return any(abs(stated_gib - gib) <= TOLERANCE * gib for gib in measured_gib)


def _memory(hardware: Hardware) -> str:
    of_gpus = [gpu.memory_bytes for gpu in hardware.gpus if gpu.kind == "cuda"]
    beside = f" and {sum(of_gpus) / _GIB:.1f} on its GPUs" if of_gpus else ""
    return f"{hardware.ram_bytes / _GIB:.1f}{beside}"


def _chips(hardware: Hardware) -> list[str]:
    """Return the names of processor and GPUs; where the system only says `aarch64`, none."""
    cpu = [] if hardware.cpu == hardware.machine else [hardware.cpu]
    return [chip for chip in dict.fromkeys([*(gpu.name for gpu in hardware.gpus), *cpu]) if chip]


def _is_called(measured: str, stated: str) -> bool:
    """Say whether all of what is written is in the name: `RTX4090` is `NVIDIA GeForce RTX 4090`."""
    return set(_parts(stated)) <= set(_parts(measured))


def _parts(name: str) -> list[str]:
    return _PART.findall(_TRADE_MARK.sub(" ", name.lower()))
