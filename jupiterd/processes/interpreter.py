"""Starts a module of this program in a Python process of its own.

Owns that one call, for workers and nurseries. Doesn't know what the module does, or how the caller
communicates with the process and ends it. Python's asyncio forks in the thread of the event loop.
That matters: a worker asks Linux to kill it when the thread that forked it ends.
"""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from typing import Protocol


class Process(Protocol):
    """A process that leads its own session, however it was started."""

    @property
    def pid(self) -> int:
        """Return its process id, which is also its group's."""
        ...

    @property
    def returncode(self) -> int | None:
        """Return its exit status, negative for a signal; None while it runs."""
        ...

    async def wait(self) -> int:
        """Wait for its end and return the exit status."""
        ...


async def start_module(
    module: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    output: int,
    pass_fds: Sequence[int],
) -> Process:
    """Run `python -m module arguments` without the working folder on the import path.

    Args:
        module: its full name.
        arguments: the arguments after it.
        environment: all environment variables.
        output: the descriptor for its standard output and standard error.
        pass_fds: descriptors that it inherits under the same numbers.
    """
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        module,
        *arguments,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        pass_fds=tuple(pass_fds),
        start_new_session=True,
    )
