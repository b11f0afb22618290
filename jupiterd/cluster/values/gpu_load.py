"""How busy one accelerator is, and the short form in which members tell each other.

Owns the record. Pure. Doesn't know how anything is measured, or which accelerator it is: rows stand
in the order of the machine's `Hardware.gpus`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

MAX_GPUS: Final = 64
"""Of one machine that are read; nobody has more."""


@dataclass(frozen=True)
class GpuLoad:
    """One reading; None is what the driver doesn't say, which is never the same as 0."""

    utilization_percent: float | None = None
    memory_used_bytes: int | None = None
    temperature_celsius: float | None = None
    power_watts: float | None = None

    def to_row(self) -> list[float | None]:
        """Return the four figures in their order, for heartbeats, which are short."""
        return [
            self.utilization_percent,
            self.memory_used_bytes,
            self.temperature_celsius,
            self.power_watts,
        ]

    def to_plain(self) -> dict[str, float | None]:
        """Return the figures by their names, for documents."""
        return {
            "utilization_percent": self.utilization_percent,
            "memory_used_bytes": self.memory_used_bytes,
            "temperature_celsius": self.temperature_celsius,
            "power_watts": self.power_watts,
        }


def read_rows(rows: object) -> tuple[GpuLoad, ...]:
    """Return what a member tells of its accelerators; a figure that can't be one is unknown."""
    if not isinstance(rows, list):
        return ()
    return tuple(map(_read, cast("list[Any]", rows)[:MAX_GPUS]))


def aligned(loads: Sequence[GpuLoad], count: int) -> tuple[GpuLoad, ...]:
    """Return one reading for each of `count` accelerators; unknown where there is none."""
    return (*loads[:count], *[GpuLoad()] * (count - len(loads)))


def _read(row: object) -> GpuLoad:
    match row:
        case [utilization, memory, temperature, power]:
            used = _figure(memory)
            return GpuLoad(
                _figure(utilization),
                None if used is None else int(used),
                _figure(temperature),
                _figure(power),
            )
        case _:
            return GpuLoad()


def _figure(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if math.isfinite(value) and value >= 0 else None
