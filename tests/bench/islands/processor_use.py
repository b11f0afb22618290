"""What the workers of machines take of their processors, looked at now and then.

Owns these readings. Doesn't know who trains what. A processor that is never idle is shared by
workers, daemon and disk: what workers have of it, beside what they have at other times, is blurred
less by others on this machine than the time that steps take.
"""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import psutil

from tests.support.network.machines import Machine

LOOK_S = 2.0
"""Looking through all processes takes some hundredths of a second."""

Span = tuple[float, float]
"""From, to; of the monotonic clock."""


class ProcessorUse:
    """Seconds that all processes below each machine's daemon have taken."""

    def __init__(self, machines: Sequence[Machine]) -> None:
        self._machines = machines
        self._of_process: dict[psutil.Process, float] = {}
        self._taken_s: dict[str, float] = defaultdict(float)
        self._readings: dict[str, list[tuple[float, float]]] = defaultdict(list)
        self._looked_s = float("-inf")

    def look(self) -> None:
        """Take readings, unless the last ones are new."""
        if time.monotonic() - self._looked_s >= LOOK_S:
            self._looked_s = time.monotonic()
            for machine in self._machines:
                self._taken_s[machine.name] += sum(map(self._since_last, _below(machine)))
                reading = time.monotonic(), self._taken_s[machine.name]
                self._readings[machine.name].append(reading)

    def share(self, spans: Mapping[str, Span]) -> float:
        """Return what they have taken of a processor in a span of each machine, in the mean."""
        return float(np.mean([self._share(name, span) for name, span in spans.items()]))

    def _share(self, machine: str, span: Span) -> float:
        at_s, taken_s = zip(*self._readings[machine], strict=True)
        assert at_s[0] <= span[0] < span[1] <= at_s[-1], f"{machine} wasn't looked at all the time"
        first_s, last_s = np.interp(span, at_s, taken_s)
        return (last_s - first_s) / (span[1] - span[0])

    def _since_last(self, process: psutil.Process) -> float:
        try:
            used = process.cpu_times()
        except psutil.NoSuchProcess:
            return 0.0
        before = self._of_process.get(process, 0.0)
        self._of_process[process] = used.user + used.system
        return max(0.0, used.user + used.system - before)


def _below(machine: Machine) -> list[psutil.Process]:
    try:
        return psutil.Process(machine.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
