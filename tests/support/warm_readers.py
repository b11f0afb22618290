"""The processes that parse documents, forked from the run's warm process.

Owns starting such a process in the place of `subprocess.Popen`. Doesn't know what is read, or what
a reader may take of memory and time.
"""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from jupiterd.workers.data.extract import extraction
from tests.support.warm_program import Program, Streams, start_program


class ReaderStarts:
    """As much of the module `subprocess` as starts a reader."""

    DEVNULL = subprocess.DEVNULL

    @staticmethod
    def Popen(command: Sequence[str], *, stdin: int, stdout: int) -> Program:  # noqa: N802 - the library's name
        """Start a reader, warm where that can be."""
        return start_program(command, os.environ, Path.cwd(), Streams(stdin, stdout, error=2))


def start_readers_warm() -> None:
    """Have this process, and those that are forked from it, start all readers so."""
    extraction.subprocess = ReaderStarts  # pyright: ignore[reportAttributeAccessIssue]
