"""Trainings on MLX in processes of their own, forked from a warm one where that can be.

Owns starting `mlx_run`, and waiting for it. Doesn't know what is trained.
"""

import contextlib
import json
import os
import subprocess
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jupiterd.processes.environment import worker_environment
from tests.support.warm_program import Streams, start_trainer

ENDS_WITHIN_S = 10.0
"""Once it prints no more."""


def run_to_end(specs: Sequence[Mapping[str, Any]], folder: Path, name: str) -> None:
    """Have one process do these runs; what each says will be in FOLDER/NAME-OF-THE-RUN.json."""
    with started(specs, folder, name) as run:
        assert run.ended() == 0, (folder / f"{name}.log").read_text()


class MlxRun:
    """A process that trains, and what it prints."""

    def __init__(self, spec: Path, log: Path) -> None:
        reads, writes = os.pipe()
        with log.open("w") as file:
            self._process = start_trainer(
                "tests.support.workers.mlx_run",
                [str(spec)],
                worker_environment("train_mlx", {"engine": "mlx", "threads": 1}),
                Streams(subprocess.DEVNULL, writes, file.fileno()),
            )
        os.close(writes)
        self.said = os.fdopen(reads)

    def ended(self) -> int:
        """Read what it prints to the end; return its exit status."""
        self.said.read()
        return self._process.wait(ENDS_WITHIN_S)

    def runs(self) -> bool:
        """Say whether it hasn't ended yet."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End it, whatever it does."""
        self.kill()
        self.said.close()


@contextlib.contextmanager
def started(specs: Sequence[Mapping[str, Any]], folder: Path, name: str) -> Generator[MlxRun]:
    """Start a process that does these runs, in a worker's environment; end it for certain."""
    spec = folder / f"{name}.spec.json"
    spec.write_text(json.dumps(specs))
    run = MlxRun(spec, folder / f"{name}.log")
    try:
        yield run
    finally:
        run.close()
