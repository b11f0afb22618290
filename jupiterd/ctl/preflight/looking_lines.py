"""The progress line at a terminal while sources are surveyed.

Owns when the line is shown, and its text. Doesn't survey anything.
"""

import time
from collections.abc import Callable
from typing import Self

from jupiterd.ctl.output.console import Console

SILENT_S = 1.0
"""Seconds before the first line: shorter surveys show nothing."""

BEGINS = "looking at the sources"


class Looking:
    """Shows the progress of a survey in a line that is erased at the end. A context manager."""

    def __init__(self, console: Console, now: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._now = now
        self._began_s = now()

    def __call__(self, line: str) -> None:
        """Show the last progress line of the survey, such as `120 480 read`; empty: none yet."""
        passed_s = self._now() - self._began_s
        if passed_s >= SILENT_S:
            self._console.passing_notice(f"{looking_line(line)} ({passed_s:.0f} s)")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._console.settle()


def looking_line(line: str) -> str:
    """Return the text for people about a survey's progress line."""
    done, _, rest = line.partition(" ")
    total, _, unit = rest.partition(" ")
    if not (done.isdecimal() and total.isdecimal() and unit):
        return BEGINS
    of_total = f" of {int(total):,}" if int(total) else ""
    return f"{BEGINS}: {unit} {int(done):,}{of_total}"
