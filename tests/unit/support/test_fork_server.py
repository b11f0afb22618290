"""A worker from the fork server has what one that was started cold has, and ends as one does."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jupiterd.processes import interpreter
from jupiterd.processes.environment import worker_environment
from jupiterd.processes.interpreter import Process
from jupiterd.protocol.frames import LINK_FD_VARIABLE
from tests.support.daemons.cluster import all_gone
from tests.support.fork_server import forked_for
from tests.support.warm_start import Forked

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.usefixtures("warm_starts"),
    pytest.mark.skipif(sys.platform != "linux", reason="the fork server is Linux's"),
]

MODULE = "tests.support.telling"
ROOT = Path(__file__).parents[3]
WITHIN_S = 30.0


@dataclass(frozen=True)
class Started:
    process: Process
    link: socket.socket
    given: dict[str, str]
    """Its environment, as it was asked for."""
    told: dict[str, Any]


@contextlib.asynccontextmanager
async def started(**more: str) -> AsyncGenerator[Started]:
    """Start the module as a worker that trains on torch, with more in its environment."""
    ours, theirs = socket.socketpair()
    said, output = os.pipe()
    environment = worker_environment("train", {"engine": "torch", "threads": 1}) | more
    environment[LINK_FD_VARIABLE] = str(theirs.fileno())
    with ours, os.fdopen(said) as lines:
        process = await interpreter.start_module(
            MODULE, ("train",), environment, output, (theirs.fileno(),)
        )
        theirs.close()
        os.close(output)
        told = json.loads(await asyncio.to_thread(lines.readline))
        yield Started(process, ours, environment, told)
        ours.close()
        await process.wait()


async def test_a_fork_has_the_environment_the_folder_and_a_session_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with started(JUPITER_ATTEMPT="3") as worker:
        assert isinstance(worker.process, Forked)
        assert worker.told == {
            "arguments": ["train"],
            "environment": worker.given,
            "folder": str(tmp_path),
            "leads": True,
            "has_torch": True,
        }
        assert [found.pid for found in forked_for(os.getpid())] == [worker.process.pid]


async def test_its_exit_status_and_the_signal_that_ends_it_are_told() -> None:
    async with started() as worker:
        worker.link.send(b"\x07")
        assert await worker.process.wait() == 7
    async with started() as worker:
        os.killpg(worker.process.pid, signal.SIGKILL)
        assert await worker.process.wait() == -signal.SIGKILL


async def test_it_ends_with_the_process_that_asked_for_it() -> None:
    async with started() as worker:
        assert isinstance(worker.process, Forked)
        worker.process._connection.shutdown(socket.SHUT_RDWR)  # as Linux does when that one ends
        assert await all_gone([worker.process.pid], WITHIN_S)


async def test_where_libraries_would_have_read_something_else_it_is_started_cold() -> None:
    async with started(OMP_NUM_THREADS="2", PYTHONPATH=str(ROOT)) as worker:
        assert not isinstance(worker.process, Forked)
        assert not worker.told["has_torch"]
        assert worker.told["leads"]
