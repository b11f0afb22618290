"""What people see at a terminal while sources are looked at.

Owns when something is said, and the words. Doesn't know how anything is looked at.
"""

import time
from collections.abc import Callable
from typing import Self

from jupiterd.ctl.output.console import Console

SILENT_S = 1.0
"""A look that is over by then needs no words."""

BEGINS = "looking at the sources"


class Looking:
    """Takes what a look says, and shows it in a line that passes. A context manager."""

    def __init__(self, console: Console, now: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._now = now
        self._began_s = now()

    def __call__(self, line: str) -> None:
        """Show what was said last, such as `120 480 read`; nothing was yet, where it is empty."""
        passed_s = self._now() - self._began_s
        if passed_s >= SILENT_S:
            self._console.passing_notice(f"{looking_line(line)} ({passed_s:.0f} s)")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._console.settle()


def looking_line(line: str) -> str:
    """Return what people read for what a look has said."""
    done, _, rest = line.partition(" ")
    total, _, unit = rest.partition(" ")
    if not (done.isdecimal() and total.isdecimal() and unit):
        return BEGINS
    of_total = f" of {int(total):,}" if int(total) else ""
    return f"{BEGINS}: {unit} {int(done):,}{of_total}"
