"""What the gang tests share: starting the odd worker."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import psutil
import pytest

from jupiterd.processes.environment import worker_environment
from jupiterd.processes.process import Worker, start_worker
from jupiterd.protocol.frames import RunTask

ROOT = Path(__file__).parents[3]
Start = Callable[..., AbstractAsyncContextManager[Worker]]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Return what starts the odd worker on one of its tasks."""

    def begin(task: str, /, **params: Any) -> AbstractAsyncContextManager[Worker]:
        order = RunTask(task, params, {}, str(tmp_path))
        environment = worker_environment(task, params) | {"PYTHONPATH": str(ROOT)}
        log = tmp_path / f"{task}.log"
        return start_worker(order, environment, log, module="tests.support.processes.odd_worker")

    return begin


def is_running(pid: int) -> bool:
    """Say whether a process runs; one that waits to be collected doesn't."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def gone_within(pid: int, timeout_s: float) -> bool:
    """Wait for a process to end; say whether it did."""
    try:
        process = psutil.Process(pid)
        if process.status() != psutil.STATUS_ZOMBIE:
            psutil.wait_procs([process], timeout=timeout_s)
    except psutil.NoSuchProcess:
        pass
    return not is_running(pid)


def open_descriptors() -> int:
    """Return how many files and sockets this process has open."""
    return len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 0
