"""jupiterd as it is, but that each sequence its workers train on takes longer: a slow machine.

python -P tests/support/slow_jupiterd.py SECONDS OPTIONS
"""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))  # it is started in whatever folder

from jupiterd.processes import interpreter
from jupiterd.processes.interpreter import Process, start_module
from jupiterd.programs import jupiterd

ROOT = str(Path(__file__).parents[2])


async def start_slowly(
    module: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    output: int,
    pass_fds: Sequence[int],
) -> Process:
    """Start a module whose steps take longer; see `interpreter.start_module`."""
    slowed = [os.environ["SLOW_SEQUENCE_S"], module, *arguments]
    found = {**environment, "PYTHONPATH": ROOT}
    return await start_module("tests.support.workers.slow_worker", slowed, found, output, pass_fds)


if __name__ == "__main__":
    os.environ["SLOW_SEQUENCE_S"] = sys.argv.pop(1)
    interpreter.start_module = start_slowly
    sys.argv[0] = "jupiterd"
    jupiterd()
