"""One screen of a real jupiter-tui in a real pty, while a real server tells it much.

Owns the measurement: processor time, bytes to the terminal, and how far it came. Processor time is
what the kernel says that the process took, so that other work on the machine matters little.
"""

import contextlib
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.support.tui.terminal import Terminal, dashboard

COLUMNS, LINES = 160, 50
SETTLE_S = 3.0
"""Opening a screen costs more than keeping it open."""
AFTER_S = 1.0
"""How much longer the server tells things than is measured."""


@dataclass(frozen=True)
class Cost:
    """What watching took."""

    cpu_percent: float
    """Of one core."""
    bytes_per_s: float
    """Written to the terminal."""
    updates_per_s: float
    """That were sent: fewer than asked for where the server gets too little of the machine."""
    sent: int
    shown: int
    """The number of the last update that came to stand on the screen."""


def watch(key: str, seconds: float, updates_per_s: float, *, folded: bool) -> Cost:
    """Open a screen by its key and look at it for so long."""
    whole_s = SETTLE_S + seconds + AFTER_S
    with (
        tempfile.TemporaryDirectory(prefix="jt-", dir="/tmp") as folder,
        _server(Path(folder), whole_s, updates_per_s, folded=folded) as server,
        dashboard(Path(folder), columns=COLUMNS, lines=LINES) as terminal,
    ):
        terminal.until(lambda text: "● live" in text)
        terminal.press(key.encode())
        terminal.read_for(SETTLE_S)
        cost = _measured(terminal, seconds)
        assert server.stdout is not None
        terminal.read_for(AFTER_S)
        sent = int(server.stdout.readline())
        with contextlib.suppress(AssertionError):
            terminal.until(lambda text: _term(text) == sent)
        return Cost(*cost, sent / whole_s, sent, _term(terminal.screen.text))


def _term(text: str) -> int:
    found = re.search(r"term (\d+)", text)
    return int(found[1]) if found else 0


def _measured(terminal: Terminal, seconds: float) -> tuple[float, float]:
    process = psutil.Process(terminal.process.pid)
    before_s, began_s = _processor_s(process), time.monotonic()
    terminal.seen = b""
    terminal.read_for(seconds)
    took_s = time.monotonic() - began_s
    return 100 * (_processor_s(process) - before_s) / took_s, len(terminal.seen) / took_s


def _processor_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


@contextmanager
def _server(
    state_dir: Path, seconds: float, updates_per_s: float, *, folded: bool
) -> Iterator[subprocess.Popen[str]]:
    command = (sys.executable, "-m", "tests.bench.dashboard.server", str(state_dir))
    told = (str(seconds), str(updates_per_s), *(["--folded"] if folded else []))
    with subprocess.Popen((*command, *told), stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()
