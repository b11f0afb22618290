"""Reading the modules of tests: each process of a run begins with a part of its own.

All processes collect all tests. After a checkout nothing is compiled yet, and pytest rewrites what
modules assert: done by each for itself, that takes minutes of the cores. What one has read lies
ready for the others. Owns which process begins with what. Doesn't know the tests.
"""

import contextlib
import importlib
from collections.abc import Iterable
from pathlib import Path

import pytest


def own_part(files: Iterable[Path], config: pytest.Config) -> list[Path]:
    """Return those files with which this process begins; none where it is the only one."""
    worker = getattr(config, "workerinput", None)
    if worker is None:
        return []
    number, count = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
    return sorted(files)[number::count]


def read(files: Iterable[Path], root: Path) -> None:
    """Import modules; why one can't be, or is skipped, is told where it is collected."""
    for file in files:
        name = ".".join(file.relative_to(root).with_suffix("").parts)
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(name)
