"""The looks at text that jupiterctl takes before a start, forked from the run's warm process.

Owns starting such a process in the place of `subprocess.Popen`. Doesn't know what is looked at.
Whoever counts what a look costs, or has another program run, starts it cold.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

import pytest

from jupiterd.ctl.preflight import source_survey
from tests.support.fork_server import FOLDER_VARIABLE
from tests.support.warm_program import Program, Streams, start_program


class Starting:
    """As much of the module `subprocess` as starts a look."""

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


@pytest.fixture
def warm_looks(fork_server: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the looks of a test begin warm."""
    if FOLDER_VARIABLE in os.environ:
        monkeypatch.setattr(source_survey, "subprocess", Starting)
