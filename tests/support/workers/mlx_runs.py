"""Trainings on MLX in processes of their own, forked from a warm one where that can be.

Owns starting `mlx_run` or `ring_ranks`, and waiting for it. Doesn't know what is trained.
"""

import contextlib
import json
import os
import signal
import socket
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

    def __init__(self, spec: Path, log: Path, module: str = "mlx_run") -> None:
        reads, writes = os.pipe()
        with log.open("w") as file:
            self._process = start_trainer(
                f"tests.support.workers.{module}",
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
        """End it at once, and those that it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        """End it, whatever it does."""
        self.kill()
        self.said.close()


def ranks_run_to_end(
    ranks: int, runs: Sequence[Mapping[str, Any]], folder: Path, name: str
) -> None:
    """Have the ranks of one ring do these runs, as `ring_ranks` says."""
    ring = [f"127.0.0.1:{port}" for port in free_ports(ranks)]
    spec = folder / f"{name}.spec.json"
    spec.write_text(json.dumps({"ring": ring, "folder": str(folder), "runs": runs}))
    run = MlxRun(spec, log := folder / f"{name}.log", "ring_ranks")
    try:
        assert run.ended() == 0, log.read_text()
    finally:
        run.close()


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in held]
    for server in held:
        server.close()
    return ports


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
