"""The reports of a launch: its ranks' output, their ends, and notices.

Owns where they go: to the terminal, and to the launch's record if there is one. Doesn't know where
events come from, or what they mean for the launch.
"""

import contextlib
import errno
import os
import sys
from collections.abc import Generator
from typing import TYPE_CHECKING, Protocol

from jupiterd.ctl.launch.rank_output import prefix
from jupiterd.ctl.launch.terminal.terminal_output import MIN_COLUMNS
from jupiterd.ctl.output.console import Console
from jupiterd.formats import counted
from jupiterd.processes.scripts.event_log import EventWriter
from jupiterd.processes.scripts.events import (
    NOTICE_RANK,
    Ended,
    Notice,
    Printed,
    ScriptEvent,
    Skipped,
)

if TYPE_CHECKING:
    from jupiterd.ctl.launch.result import LaunchResult


class LaunchOutput(Protocol):
    """Shows the output of ranks."""

    def is_shown(self, rank: int) -> bool:
        """Return whether this rank's lines are written."""
        ...

    def take(self, rank: int, data: bytes, *, is_error: bool) -> None:
        """Show bytes that a rank has printed."""
        ...

    def finish(self, rank: int) -> None:
        """Write the unfinished lines of a rank that has ended."""
        ...

    def tail(self, rank: int) -> list[str]:
        """Return the last lines of a rank that isn't shown."""
        ...

    def settle(self) -> None:
        """Prepare the terminal for other output."""
        ...

    def resume(self) -> None:
        """Redraw what `settle` has erased."""
        ...


class LaunchReporter:
    """Writes all reports of a launch; a closed terminal doesn't stop the launch."""

    def __init__(
        self,
        output: LaunchOutput,
        console: Console,
        events: EventWriter | None = None,
        *,
        has_terminal: bool = False,
    ) -> None:
        self._output = output
        self._console = console
        self._events = events
        self._has_terminal = has_terminal
        self._is_failure_reported = False
        self.result: LaunchResult | None = None
        """The document that is printed at the end; None: it wasn't requested."""

    def take(self, event: ScriptEvent, machine: str) -> None:
        """Record an event of a rank, and show it."""
        if self._events is not None and not isinstance(event, Notice):  # `notice` records it
            self._events.append(event)
        if self.result is not None:
            self.result.take(event)
        match event:
            case Printed(rank, is_error, data):
                with self._reporting_failure():
                    self._output.take(rank, data, is_error=is_error)
            case Ended(rank, _):
                with self._reporting_failure():
                    self._output.finish(rank)
            case Skipped(size_bytes):
                size = counted(size_bytes, "byte")
                self.notice(f"{size} of what the ranks on {machine} printed aren't kept any more")
            case Notice(words):
                self.notice(f"{machine}: {words}")
            case _:
                pass

    def notice(self, text: str) -> None:
        """Write a line of the launch itself."""
        if self._events is not None:
            self._events.append(Printed(NOTICE_RANK, is_error=True, data=f"{text}\n".encode()))
        with contextlib.suppress(OSError):
            self._output.settle()
            self._console.notice(text)
            self._output.resume()

    @contextlib.contextmanager
    def _reporting_failure(self) -> Generator[None]:
        """Notify once that ranks' output can't be written; the script goes on."""
        try:
            yield
        except OSError as error:
            if not self._is_failure_reported:
                self._is_failure_reported = True
                why = "nobody reads it any more" if error.errno == errno.EPIPE else error.strerror
                where = "; jupiterctl launch logs shows it" if self._events is not None else ""
                self.notice(
                    f"what the ranks print can't be written ({why}); the script goes on{where}"
                )

    def show_result(self, status: int, reason: str) -> None:
        """Print the result's document, if it was requested."""
        if self.result is not None:
            with contextlib.suppress(OSError):
                self._console.show(self.result.document(status, reason), list)

    def tail(self, rank: int) -> list[str]:
        """Return the last lines of a rank that isn't shown."""
        return self._output.tail(rank)

    def report(self, words: str, rank: int | None) -> None:
        """Write why an attempt failed, and the failed rank's last lines if they aren't shown."""
        others = "; the others were ended" if rank is not None else ""
        self.notice(f"{words}{others}")
        if rank is not None and not self._output.is_shown(rank):
            for line in self._output.tail(rank):
                self.notice(f"{prefix(rank).decode()}{line}")

    def window(self) -> tuple[int, int] | None:
        """Return rows and columns for a rank on our terminal; None: there is no terminal."""
        if not self._has_terminal:
            return None
        with contextlib.suppress(OSError):
            columns, rows = os.get_terminal_size(sys.stdout.fileno())
            return max(1, rows), max(MIN_COLUMNS, columns - len(prefix(0)))
        return None
