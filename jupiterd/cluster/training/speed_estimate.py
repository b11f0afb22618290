"""How fast a machine trains, as far as anybody can know: from probes of it alone and from steps.

Owns one machine's estimate and how sure it is. Doesn't know gangs, or the clock: it counts steps.

The estimate is a Kalman filter over three logarithms: the machine's speed, how that changes from
step to step, and by how much its probes are off, alike each time. So a machine that was measured in
a gang is known by its probes afterwards, and one that wasn't is known to a factor of two.
"""

import math
from typing import Final

PROBE_DEVIATION: Final = 0.4
"""Of the logarithm of what a probe is off by: a factor of two at the most, whatever lies between
equally likely."""

PROBE_NOISE: Final = 0.03
"""Of one probe beside another one, as a share."""

STEP_NOISE: Final = 0.1
"""Of one step beside another one, as a share."""

CHANGE_DEVIATION: Final = 0.0002
"""Of the change of a speed in one step, as a share."""

WANDERS: Final = 0.001
"""What a speed changes by in one step besides, as a share."""

SURPRISE: Final = 4.0
"""A step that is so many deviations off is a hiccup."""

SURPRISES: Final = 3
"""Steps in a row that are no hiccup any more: the machine's speed is another one."""

SPEED, CHANGE, BIAS = range(3)

_OF_STEP, _OF_PROBE = (1.0, 0.0, 0.0), (1.0, 0.0, 1.0)


class SpeedEstimate:
    """One machine's speed in units per second; all with one and the same unit."""

    def __init__(self, probe: float, at_step: int = 0, deviation: float = PROBE_DEVIATION) -> None:
        """Begin with a probe.

        Args:
            probe: what it does alone, or is guessed to do.
            at_step: the gang's step.
            deviation: of the logarithm of what that is off by.
        """
        known, change = deviation**2, CHANGE_DEVIATION**2
        self._mean = [math.log(probe), 0.0, 0.0]
        self._spread = [
            [known + PROBE_NOISE**2, 0.0, -known],
            [0.0, change, 0.0],
            [-known, 0.0, known],
        ]
        self._at_step, self._surprises = at_step, 0

    @property
    def deviation(self) -> float:
        """Return the standard deviation of the speed's logarithm."""
        return math.sqrt(self._spread[SPEED][SPEED])

    def rate(self, deviations: float = 0.0) -> float:
        """Return the speed, so many deviations above what is likely."""
        return math.exp(self._mean[SPEED] + deviations * self.deviation)

    def rescale(self, factor: float) -> None:
        """Take in that its unit is another one: so many of the new ones are one of the old."""
        self._mean[SPEED] += math.log(factor)

    def stepped(self, rate: float, at_step: int) -> None:
        """Take in what it did in a step of a gang."""
        self._pass_to(at_step)
        off = math.log(rate) - self._mean[SPEED]
        if abs(off) > SURPRISE * math.hypot(self.deviation, STEP_NOISE):
            self._surprises += 1
            if self._surprises < SURPRISES:
                return
            self._spread[SPEED][SPEED] += off**2
        self._surprises = 0
        self._correct(off, _OF_STEP, STEP_NOISE)

    def probed(self, rate: float, at_step: int) -> None:
        """Take in what it does alone."""
        self._pass_to(at_step)
        off = math.log(rate) - self._mean[SPEED] - self._mean[BIAS]
        self._correct(off, _OF_PROBE, PROBE_NOISE)

    def _pass_to(self, at_step: int) -> None:
        """Let steps pass: its speed has changed as it did before, and in ways nobody knows."""
        steps, spread = at_step - self._at_step, self._spread
        self._at_step = at_step
        self._mean[SPEED] += steps * self._mean[CHANGE]
        for column in range(3):
            spread[SPEED][column] += steps * spread[CHANGE][column]
        for row in spread:
            row[SPEED] += steps * row[CHANGE]
        spread[SPEED][SPEED] += steps * WANDERS**2

    def _correct(self, off: float, measures: tuple[float, float, float], noise: float) -> None:
        spread = self._spread
        of_state = [sum(row[i] * measures[i] for i in range(3)) for row in spread]
        variance = sum(of_state[i] * measures[i] for i in range(3)) + noise**2
        for row in range(3):
            gain = of_state[row] / variance
            self._mean[row] += gain * off
            for column in range(3):
                spread[row][column] -= gain * of_state[column]
