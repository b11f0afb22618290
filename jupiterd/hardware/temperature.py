"""How hot the processor is.

Owns choosing the sensor. Doesn't know what is too hot. Some sensors take long to answer: look in a
thread. macOS shows none.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import psutil

CPU_SENSORS: Final = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "cpu-thermal", "acpitz")
"""What drivers call the processor's, the most exact first."""

HOTTEST_CELSIUS: Final = 150.0
"""Beyond it, or at 0 and below, a sensor isn't there."""


def cpu_temperature_celsius() -> float | None:
    """Return the temperature of the hottest core; None where the system doesn't say."""
    try:
        return hottest_core(psutil.sensors_temperatures())
    except (AttributeError, OSError, ValueError):  # not on every system
        return None


def hottest_core(sensors: Mapping[str, Sequence[Any]]) -> float | None:
    """Return the hottest reading of the processor's sensors, as psutil tells them by driver."""
    for name in CPU_SENSORS:
        told = [float(sensor.current) for sensor in sensors.get(name, ())]
        if sound := [celsius for celsius in told if 0 < celsius < HOTTEST_CELSIUS]:
            return max(sound)
    return None
