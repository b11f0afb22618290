"""jupiterd as it is, but that each sequence its workers train on takes longer: a slow machine.

python -P tests/support/slow_jupiterd.py SECONDS OPTIONS
"""

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))  # it is started in whatever folder

from jupiterd.processes import interpreter
from jupiterd.processes.interpreter import Process
from jupiterd.programs import jupiterd

WORKER = Path(__file__).parent / "workers" / "slow_worker.py"


async def start_slowly(
    module: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    output: int,
    pass_fds: Sequence[int],
) -> Process:
    """Start a module whose steps take longer; see `interpreter.start_module`."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", WORKER, os.environ["SLOW_SEQUENCE_S"], module, *arguments),
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        pass_fds=tuple(pass_fds),
        start_new_session=True,
    )


if __name__ == "__main__":
    os.environ["SLOW_SEQUENCE_S"] = sys.argv.pop(1)
    interpreter.start_module = start_slowly
    sys.argv[0] = "jupiterd"
    jupiterd()
