"""What programs start themselves, looks at text and readers of documents, forked while warm.

Owns starting it in the place of `subprocess.Popen`. Doesn't know what is looked at or read, or what
that may take of memory and time. Whoever counts what it costs, or has another program run, starts
it cold.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from jupiterd.ctl.preflight import source_survey
from jupiterd.workers.data.extract import extraction
from tests.support.warm_program import Program, Streams, start_program


class LookStarts:
    """As much of the module `subprocess` as starts a look at text."""

    TimeoutExpired = subprocess.TimeoutExpired

    @staticmethod
    def Popen(  # noqa: N802 - the library's name
        command: Sequence[str],
        *,
        stdin: IO[str],
        stdout: IO[str],
        stderr: IO[str],
        env: Mapping[str, str],
    ) -> Program:
        """Start a look, warm where that can be."""
        streams = Streams(stdin.fileno(), stdout.fileno(), stderr.fileno())
        return start_program(command, env, Path.cwd(), streams)


class ReaderStarts:
    """As much of the module `subprocess` as starts a reader of documents."""

    DEVNULL = subprocess.DEVNULL

    @staticmethod
    def Popen(command: Sequence[str], *, stdin: int, stdout: int) -> Program:  # noqa: N802 - the library's name
        """Start a reader, warm where that can be."""
        return start_program(command, os.environ, Path.cwd(), Streams(stdin, stdout, error=2))


def start_looks_warm() -> None:
    """Have this process start all looks so."""
    source_survey.subprocess = LookStarts  # pyright: ignore[reportAttributeAccessIssue]


def start_readers_warm() -> None:
    """Have this process, and those that are forked from it, start all readers so."""
    extraction.subprocess = ReaderStarts  # pyright: ignore[reportAttributeAccessIssue]
