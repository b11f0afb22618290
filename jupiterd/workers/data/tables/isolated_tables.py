"""Rows of tables that a process of its own reads, which may die of any of them.

Owns that process: its limits, and what its death says of the table. Doesn't know kinds of tables.
"""

import signal
import socket
import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import msgpack

from jupiterd.errors import from_wire
from jupiterd.workers.data.extract.extraction_process import receive, send
from jupiterd.workers.data.skips import SkipReason


@dataclass(frozen=True)
class TableLimits:
    """What reading one table may cost."""

    memory_bytes: int = 4 << 30
    """Of data; the libraries want about half a GiB."""
    silence_s: float = 300.0
    """Longest time between two messages; a library that has lost a server tries again for 100 s."""
    max_chars: int = 8 << 20
    """A longer text is left out."""
    max_chars_in_all: int = 16 << 30
    """Nothing more is read then."""


def rows_apart(
    kind: str, order: Mapping[str, Any], fields: Sequence[str], limits: TableLimits
) -> Iterator[Mapping[str, Any] | SkipReason]:
    """Yield the rows of a table, of each the fields that are text; the first one is the text.

    In the place of a row that can't be had stands the reason; where it is the table that can't be
    read, or costs too much, that is the last one.

    Raises:
        JupiterError: there is no such table, no way to it, or no library for it.
    """
    bounds = {"most": limits.max_chars, "most_in_all": limits.max_chars_in_all}
    request = {**order, **bounds, "kind": kind, "fields": list(fields)}
    with _process(limits) as (process, link):
        try:
            send(link, request)
            while message := receive(link):
                reply = cast("dict[str, Any]", msgpack.unpackb(message, unicode_errors=_HALVES))
                if "error" in reply:
                    raise from_wire(*reply["error"])
                if not reply["rows"]:
                    return
                yield from (
                    SkipReason(row) if isinstance(row, str) else row for row in reply["rows"]
                )
        except TimeoutError:
            yield SkipReason.TIMED_OUT
            return
        except ConnectionError:
            pass
        yield _cause_of_death(process)


_HALVES = "surrogatepass"
"""Halves of characters come through; the collection leaves them out."""


@contextmanager
def _process(limits: TableLimits) -> Generator[tuple[subprocess.Popen[bytes], socket.socket]]:
    ours, theirs = socket.socketpair()
    module = "jupiterd.workers.data.tables.table_process"
    with ours:
        with theirs:
            process = subprocess.Popen(
                (sys.executable, "-m", module, str(limits.memory_bytes)),
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
            )
        ours.settimeout(limits.silence_s)
        try:
            yield process, ours
        finally:
            process.kill()
            process.wait()


def _cause_of_death(process: subprocess.Popen[bytes]) -> SkipReason:
    """Say what it died of: C++ code that got no memory aborts, and the kernel kills."""
    ended_by = -process.wait()
    no_memory = ended_by in (signal.SIGABRT, signal.SIGKILL)
    return SkipReason.OUT_OF_MEMORY if no_memory else SkipReason.CRASHED
