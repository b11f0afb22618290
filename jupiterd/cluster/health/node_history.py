"""The last ten minutes of one node's telemetry: a ring of points, one every two seconds.

Pure. Owns the series and how much of them is kept. Doesn't know where points come from, or the
clock: it is handed the number of the slot that a point belongs to.

A series takes 4 bytes a point (single precision: a hundredth of a percent, a quarter of a MiB of
4 GiB), so a node takes 12 KB, and 5 KB more for each GPU: 16 nodes with a GPU each 0.3 MB, with
eight each 0.8 MB, as Python holds them.

What is told is in two parts, so that whoever watches hears little again: the `history`, which
changes once a minute, and the `recent` points since. One after the other they are all points; the
last of them is from just now.
"""

import math
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, Final

from jupiterd.cluster.values.gpu_load import GpuLoad

INTERVAL_S: Final = 2.0
RETAINED_POINTS: Final = 300
PART_POINTS: Final = 30
"""Points move from `recent` to `history` so many at a time."""

MAX_GPUS: Final = 16
"""Of one node whose readings are kept."""

SERIES: Final[Mapping[str, int]] = {
    "cpu_percent": 1,
    "cpu_temperature_celsius": 1,
    "ram_percent": 1,
    "process_bytes": 0,
    "disk_free_bytes": 0,
    "loop_lag_s": 3,
    "tokens_per_s": 1,
    "step_lag": 0,
    "rtt_s": 6,
}
"""What is kept of a node, and how many decimals are told."""

GPU_SERIES: Final[Mapping[str, int]] = {
    "utilization_percent": 0,
    "memory_used_bytes": 0,
    "temperature_celsius": 0,
    "power_watts": 1,
}
"""The same of each of its GPUs."""

SeriesValues = Mapping[str, float | None]
_SLOTS: Final = RETAINED_POINTS + PART_POINTS


class _Ring:
    """One series; what isn't known is no number."""

    def __init__(self) -> None:
        self._values = array("f", [math.nan] * _SLOTS)

    def put(self, slot: int, value: float | None) -> None:
        self._values[slot % _SLOTS] = math.nan if value is None else value

    def values(self, slots: range, digits: int) -> list[float | None] | None:
        """Return the values of some slots; None where none of them is known."""
        found = [self._values[slot % _SLOTS] for slot in slots]
        if all(map(math.isnan, found)):
            return None
        return [None if math.isnan(v) else _rounded(v, digits) for v in found]


def _rounded(value: float, digits: int) -> float:
    return round(value, digits) if digits else round(value)


class NodeHistory:
    """The series of one node."""

    def __init__(self) -> None:
        self._rings = {name: _Ring() for name in SERIES}
        self._gpus: list[dict[str, _Ring]] = []
        self._newest: int | None = None

    def add(self, slot: int, reading: SeriesValues, gpus: Sequence[GpuLoad] = ()) -> None:
        """Keep a point; slots that were left out since the last one are unknown."""
        begin = slot if self._newest is None else max(self._newest + 1, slot - _SLOTS + 1)
        while len(self._gpus) < min(len(gpus), MAX_GPUS):
            self._gpus.append({name: _Ring() for name in GPU_SERIES})
        for each in range(begin, slot):
            self._put(each, {}, ())
        self._put(slot, reading, gpus)
        self._newest = slot

    def _put(self, slot: int, reading: SeriesValues, gpus: Sequence[GpuLoad]) -> None:
        for name, ring in self._rings.items():
            ring.put(slot, reading.get(name))
        for place, rings in enumerate(self._gpus):
            values = gpus[place].to_plain() if place < len(gpus) else {}
            for name, ring in rings.items():
                ring.put(slot, values.get(name))

    def to_plain(self) -> dict[str, Any]:
        """Return `history` and `recent`: each series with its values, None where none is known."""
        newest = -1 if self._newest is None else self._newest
        begins = max(0, newest) // PART_POINTS * PART_POINTS
        return {
            "history": self._part(range(max(0, begins - RETAINED_POINTS), begins)),
            "recent": self._part(range(begins, newest + 1)),
        }

    def _part(self, slots: range) -> dict[str, Any]:
        return {
            "interval_s": INTERVAL_S,
            "points": len(slots),
            **{name: self._rings[name].values(slots, digits) for name, digits in SERIES.items()},
            "gpus": [
                {name: rings[name].values(slots, digits) for name, digits in GPU_SERIES.items()}
                for rings in self._gpus
            ],
        }


def slot_of(now_s: float) -> int:
    """Return the number of the slot that a moment belongs to."""
    return int(now_s // INTERVAL_S)
