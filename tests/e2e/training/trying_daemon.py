"""jupiterd as it is, but for its workers: they try micro batches on a CPU as on a GPU."""

import sys
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from jupiterd.daemon.app.main import main
from jupiterd.daemon.executor import worker_runner
from jupiterd.processes.process import Worker, start_worker
from jupiterd.protocol.frames import RunTask

ROOT = Path(__file__).resolve().parents[3]


def started(
    order: RunTask, environment: Mapping[str, str], *places: Any, **_: Any
) -> AbstractAsyncContextManager[Worker]:
    there = {**environment, "PYTHONPATH": str(ROOT)}
    return start_worker(order, there, *places, module="tests.e2e.training.trying_worker")


if __name__ == "__main__":
    worker_runner.__dict__["start_worker"] = started
    sys.exit(main())
