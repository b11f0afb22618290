"""Processes that take training steps by turns: one computes while the others wait.

Owns the asking and the answers. A busy machine hits steps that lie next to each other alike, and a
process is begun and warmed up once. Doesn't know what is trained.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.bench.train.moment import Moment, now

_ANSWER = "step took "
"""Begins the lines that are answers: libraries print others."""


class Turns:
    """In a process that takes steps: each is taken when it is asked for."""

    def __init__(self) -> None:
        self._began = now()

    def ended(self) -> None:
        """Tell what the step took, and wait until another one is asked for."""
        print(_ANSWER + json.dumps(now().since(self._began, 1)), flush=True)
        if not sys.stdin.readline():
            os._exit(0)  # as a worker does
        self._began = now()


class Contestant:
    """A process that takes steps, for whoever asks."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self._log = log
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                command, env=dict(environment), text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            )  # fmt: skip

    def step(self, *, is_first: bool = False) -> Moment:
        """Take a step; the first one is taken unasked.

        Raises:
            RuntimeError: the process has ended.
        """
        asking, answers = self._process.stdin, self._process.stdout
        assert asking is not None
        assert answers is not None
        if not is_first:
            asking.write("\n")
            asking.flush()
        for line in answers:
            if line.startswith(_ANSWER):
                return Moment(*json.loads(line.removeprefix(_ANSWER)))
        raise RuntimeError(self._log.read_text()[-2000:])

    def peak_bytes(self) -> int:
        """Return the most memory that it has had so far."""
        rows = Path(f"/proc/{self._process.pid}/status").read_text(encoding="utf-8").splitlines()
        (peak,) = (row.split()[1] for row in rows if row.startswith("VmHWM:"))
        return int(peak) * 1024

    def end(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.communicate()
