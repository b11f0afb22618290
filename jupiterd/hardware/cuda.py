"""Which devices the ranks of this machine compute on, without importing torch.

Owns counting the CUDA devices that torch can use, and leaving GPUs out of what a machine says of
itself where its owner wants the CPU alone. Doesn't know their names or memory (`nvidia`).
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from jupiterd.cluster.planning.engines import MLX
from jupiterd.cluster.planning.rank_placement import CPU, CUDA, training_devices
from jupiterd.cluster.values.hardware import Gpu, Hardware
from jupiterd.errors import InvalidSettingError

METAL: Final = "metal"
VISIBLE: Final = "CUDA_VISIBLE_DEVICES"
_BUILT_FOR = re.compile(r"^cuda\b[^=\n]*=\s*['\"]([\d.]+)['\"]", re.MULTILINE)


def usable_cuda_devices(
    present: int, environment: Mapping[str, str] = os.environ, torch: Path | None = None
) -> int:
    """Return how many of the devices that are present torch can use; they are numbered from 0.

    environment: where CUDA_VISIBLE_DEVICES may hide some, as it does from a worker
    torch: its folder; default: wherever it is installed
    """
    if not _is_built_for_cuda(_folder() if torch is None else torch):
        return 0
    if VISIBLE not in environment:
        return present
    named = [part for part in environment[VISIBLE].split(",") if part.strip() not in {"", "-1"}]
    return min(present, len(named))


def visible_gpus(
    gpus: Sequence[Gpu], environment: Mapping[str, str] = os.environ
) -> tuple[Gpu, ...]:
    """Return the CUDA devices as a worker numbers them: those that the environment leaves it.

    What is named there and isn't among `gpus` (a part of one) is known by that name alone.
    """
    present = [gpu for gpu in gpus if gpu.kind == CUDA]
    if VISIBLE not in environment:
        return tuple(present)
    names = [part.strip() for part in environment[VISIBLE].split(",")]
    return tuple(_named(name, present) for name in names if name not in {"", "-1"})


def _named(name: str, present: Sequence[Gpu]) -> Gpu:
    if name.isdecimal() and int(name) < len(present):
        return present[int(name)]
    # A UUID may be cut short, as long as it means one alone.
    meant = [gpu for gpu in present if gpu.uuid.startswith(name)]
    return meant[0] if len(meant) == 1 else Gpu(name, name, 0, CUDA)


def _folder() -> Path | None:
    spec = find_spec("torch")
    places = () if spec is None else spec.submodule_search_locations or ()
    return next((Path(place) for place in places), None)


def _is_built_for_cuda(folder: Path | None) -> bool:
    """Say whether torch was built for CUDA, as the file with its version has it."""
    try:
        text = "" if folder is None else (folder / "version.py").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    return _BUILT_FOR.search(text) is not None


def with_devices(hardware: Hardware, wanted: Sequence[str]) -> Hardware:
    """Return the machine with the devices that its ranks compute on.

    Where people want the CPU alone, it has no GPU, and no engine that computes on one: whoever
    plans, counts or shows what members have takes it for a machine without.

    Raises:
        InvalidSettingError: a device is wanted that isn't there.
    """
    present = sum(gpu.kind == CUDA for gpu in hardware.gpus)
    try:
        devices = training_devices(wanted, usable_cuda_devices(present) if present else 0)
    except ValueError as error:
        hint = "nvidia-smi -L shows them; --devices cpu trains on the CPU"
        raise InvalidSettingError(f"devices: {error}", hint) from error
    known = replace(hardware, devices=devices)
    return _without_gpus(known) if wanted and {*devices} == {CPU} else known


def _without_gpus(hardware: Hardware) -> Hardware:
    engines = hardware.engines
    if any(gpu.kind == METAL for gpu in hardware.gpus):
        engines = tuple(engine for engine in engines if engine != MLX)
    return replace(hardware, gpus=(), engines=engines)
