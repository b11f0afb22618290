"""A figure, its goals, and what was measured.

Owns the arithmetic and the table. Doesn't know what is measured.
"""

import asyncio
import os
import platform
import statistics
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from jupiterd.daemon.runtime.clock import wall_iso

Trial = Callable[[], Awaitable[float]]


@dataclass(frozen=True)
class Goal:
    """A limit for one quantile; `at_least` turns it round."""

    quantile: float
    limit: float
    at_least: bool = False

    def __str__(self) -> str:
        sign = ">=" if self.at_least else "<="
        return f"p{self.quantile * 100:g} {sign} {self.limit:,g}"

    def is_reached(self, values: Sequence[float]) -> bool:
        found = quantile(values, self.quantile)
        return found >= self.limit if self.at_least else found <= self.limit


@dataclass(frozen=True)
class Figure:
    """One line of the table."""

    name: str
    unit: str
    goals: tuple[Goal, ...]
    trial: Trial
    """Measures once."""
    trials: int = 20
    """How often, unless the command line says otherwise; the dear ones less often."""


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value that `share` of all don't exceed: the nearest rank, nothing invented."""
    ranked = sorted(values)
    return ranked[min(int(share * len(ranked)), len(ranked) - 1)]


async def measure(figure: Figure, trials: int) -> list[float]:
    """Try as often as asked; a trial that fails is told and counts as missed."""
    values: list[float] = []
    for number in range(1, trials + 1):
        try:
            value = await figure.trial()
        except (AssertionError, TimeoutError) as error:
            print(f"  {figure.name}, trial {number}: failed: {str(error).splitlines()[0]}")
            value = float("-inf") if figure.goals[0].at_least else float("inf")
        values.append(value)
        await asyncio.sleep(0)
    return values


def line(figure: Figure, values: Sequence[float]) -> str:
    """Return the figure's line: median, p95, worst, and each goal with whether it is reached."""
    told = [f"{goal} {'reached' if goal.is_reached(values) else 'MISSED'}" for goal in figure.goals]
    p50, p95 = statistics.median(values), quantile(values, 0.95)
    numbers = f"p50 {p50:,.3g}  p95 {p95:,.3g}  min {min(values):,.3g}  max {max(values):,.3g}"
    return f"{figure.name} ({figure.unit}, {len(values)} trials): {numbers}  [{'; '.join(told)}]"


def machine() -> str:
    """Return where and when this was measured."""
    cores, memory_gib = os.cpu_count(), psutil.virtual_memory().total / 2**30
    return (
        f"{wall_iso()}, {_cpu()}, {cores} cores, {memory_gib:.0f} GiB, {platform.system()} "
        f"{platform.release()}, Python {platform.python_version()}"
    )


def _cpu() -> str:
    try:
        rows = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        rows = []
    names = [row.partition(":")[2].strip() for row in rows if row.startswith("model name")]
    return names[0] if names else platform.processor() or "an unknown CPU"
