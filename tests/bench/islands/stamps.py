"""When the ranks and daemons of machines said what, and what they had sent and taken by then.

Owns following the logs of processes that run, and when counters are read: the interfaces' and the
processors'. Doesn't know what the lines mean.
Ranks' lines bear no time: each gets that at which it is seen, `LOOK_S` after their daemon has
written it, which gathers them for a quarter of a second (`gang.process`).
"""

import re
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from tests.bench.islands.processor_use import ProcessorUse
from tests.support.network.lab import interface
from tests.support.network.machines import Machine

LOOK_S = 0.02
FIND_S = 0.5
"""How often new logs are looked for, and the counters are read."""

SENT_COLUMN = 8
"""Of /proc/net/dev, after the name."""

RANK_LOG = re.compile(r"-\d+-train(-mlx)?\.log$")


@dataclass(frozen=True)
class Said:
    """One line."""

    machine: str
    at_s: float
    """Of the monotonic clock."""
    text: str


class Stamps:
    """What is said while it is entered."""

    def __init__(self, machines: Sequence[Machine]) -> None:
        self._machines = machines
        self._logs: dict[Path, _Log] = {}
        self._found_s = float("-inf")
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self.said: list[Said] = []
        self.processors = ProcessorUse(machines)
        self._sent: list[tuple[float, int]] = []

    def __enter__(self) -> Self:
        """Begin to follow."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Follow no more."""
        self._over.set()
        self._thread.join()

    def sent_bytes(self, from_s: float, to_s: float) -> float:
        """Return what all machines have sent between two moments."""
        at_s, sent = zip(*self._sent, strict=True)
        first, last = np.interp([from_s, to_s], at_s, sent)
        return float(last - first)

    def usual_rate(self, from_s: float, to_s: float) -> float:
        """Return the bytes per second that they sent between two moments, mostly."""
        times, sent = zip(*(each for each in self._sent if from_s <= each[0] <= to_s), strict=True)
        return float(np.median(np.diff(sent) / np.diff(times)))

    def _follow(self) -> None:
        while not self._over.wait(LOOK_S):
            if time.monotonic() - self._found_s >= FIND_S:
                self._find()
            for path in [*self._logs]:
                self._read(path)

    def _find(self) -> None:
        self._found_s = time.monotonic()
        for machine in self._machines:
            self._logs.setdefault(machine.log, _Log(machine.name))
            for path in (machine.state_dir / "logs").glob("*.log"):
                if RANK_LOG.search(path.name):
                    self._logs.setdefault(path, _Log(machine.name))
        self._sent.append((time.monotonic(), sum(map(sent_bytes, self._machines))))
        self.processors.look()

    def _read(self, path: Path) -> None:
        log = self._logs[path]
        if path.stat().st_size == log.read_bytes:  # of most: reading all of them takes a processor
            return
        with path.open("rb") as file:
            file.seek(log.read_bytes)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        log.read_bytes += len(whole)
        for text in whole.decode(errors="replace").splitlines():
            self.said.append(Said(log.machine, time.monotonic(), text))


@dataclass
class _Log:
    machine: str
    read_bytes: int = 0


def sent_bytes(machine: Machine) -> int:
    """Return what a machine has sent over its first link; nothing more once it is dead."""
    try:
        rows = Path(f"/proc/{machine.host.inside.pid}/net/dev").read_text(encoding="ascii")
    except OSError:
        return 0
    (row,) = (row for row in rows.splitlines() if row.strip().startswith(f"{interface(0)}:"))
    return int(row.partition(":")[2].split()[SENT_COLUMN])
