"""The GPUs that a launched script's processes may use on this machine.

Owns what `--devices` of a launch, those of the machine's owner and CUDA_VISIBLE_DEVICES come to
together. Doesn't know who uses a GPU just now.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from jupiterd.cluster.planning.engines import MLX
from jupiterd.cluster.planning.rank_placement import CPU, CUDA
from jupiterd.cluster.values.hardware import Gpu
from jupiterd.errors import RefusedError, UsageError
from jupiterd.hardware.cuda import VISIBLE, visible_gpus

METAL: Final = "metal"


@dataclass(frozen=True)
class ScriptDevices:
    """What one machine's processes of a script compute on."""

    visible: str | None
    """What CUDA_VISIBLE_DEVICES must be; None: as it is."""
    usable: tuple[Gpu, ...]
    """In the order of the numbers by which the processes know them."""
    is_chosen: bool
    """Somebody has named them, so all of them are used."""

    def used_by(self, processes: int) -> tuple[str, ...]:
        """Return the UUIDs of those that so many processes compute on, by their local ranks."""
        used = self.usable if self.is_chosen else self.usable[:processes]
        return tuple(dict.fromkeys(gpu.uuid for gpu in used if gpu.uuid))


def script_devices(
    wanted: str,
    gpus: Sequence[Gpu],
    engine: str,
    offered: Sequence[str] = (),
    environment: Mapping[str, str] = os.environ,
) -> ScriptDevices:
    """Return what a script may use.

    Args:
        wanted: `0,1` or `cpu`; empty: all that is offered.
        gpus: of this machine.
        engine: torch or mlx.
        offered: the devices in the settings of the machine's owner; none: all that are visible.
        environment: of whoever starts the processes.

    Raises:
        UsageError: there is no such device.
        RefusedError: its owner doesn't offer it.
    """
    if engine == MLX:
        metal = [gpu for gpu in gpus if gpu.kind == METAL and wanted != CPU]
        return ScriptDevices(None, tuple(metal), is_chosen=False)
    seen = visible_gpus(gpus, environment)
    free = [int(each) for each in dict.fromkeys(offered) if each != CPU]
    free = [number for number in free if number < len(seen)] if offered else [*range(len(seen))]
    if wanted == CPU:
        return ScriptDevices("", (), is_chosen=True)
    chosen = [int(each) for each in wanted.split(",")] if wanted else free
    _check(chosen, free, len(seen))
    if not wanted and not offered:
        return ScriptDevices(None, seen, is_chosen=False)
    names = _names(len(seen), environment)
    visible = ",".join(names[number] for number in chosen)
    return ScriptDevices(visible, tuple(seen[number] for number in chosen), is_chosen=bool(wanted))


def _check(chosen: Sequence[int], offered: Sequence[int], count: int) -> None:
    shown = ", ".join(map(str, offered)) or "none"
    for number in chosen:
        if number >= count:
            raise UsageError(
                f"there is no {CUDA} device {number}: there are {count}",
                "name others with --devices, or --devices cpu",
            )
        if number not in offered:
            raise RefusedError(
                f"its owner doesn't offer {CUDA} device {number}, but: {shown}",
                "name one of those with --devices",
            )


def _names(count: int, environment: Mapping[str, str]) -> list[str]:
    """Return what CUDA knows them by, where some may be hidden already."""
    if VISIBLE not in environment:
        return [str(number) for number in range(count)]
    parts = (part.strip() for part in environment[VISIBLE].split(","))
    return [part for part in parts if part not in {"", "-1"}]
