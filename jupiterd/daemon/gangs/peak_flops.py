"""What the devices of a gang can do together at best.

Owns the sum. Pure: it is handed what machines have told of themselves. Doesn't know the table
(`cycle.peak_flops`), or what a gang makes of it.
"""

from collections.abc import Iterable

from jupiterd.cluster.planning.rank_placement import CUDA
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.cycle.training.peak_flops import peak_flops_per_s

Seat = tuple[Hardware | None, str]
"""A rank's machine, as far as it is known, and its device, such as `cuda:0`."""


def peak_of_gang(seats: Iterable[Seat]) -> float | None:
    """Return the peak in operations per second; None where that of one rank isn't known."""
    peaks = [_peak(machine, device) for machine, device in seats]
    known = [peak for peak in peaks if peak is not None]
    return sum(known) if known and len(known) == len(peaks) else None


def _peak(machine: Hardware | None, device: str) -> float | None:
    kind, _, number = device.partition(":")
    if machine is None or kind != CUDA or not number.isdecimal():
        return None
    gpus = [gpu for gpu in machine.gpus if gpu.kind == CUDA]
    return peak_flops_per_s(gpus[int(number)].name) if int(number) < len(gpus) else None
