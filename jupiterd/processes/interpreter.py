"""Starting a module of ours in a Python process of its own.

Owns that one call, for workers and for nurseries alike. Doesn't know what the module does, nor how
the process is listened to and ended. Python's asyncio forks in the loop's own thread: that matters,
since a worker asks Linux to be killed when the thread that forked it ends.
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
        """Return the exit status once it has ended."""
        ...


async def start_module(
    module: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    output: int,
    pass_fds: Sequence[int],
) -> Process:
    """Run `python -m module arguments` with nothing of the working folder on its path.

    Args:
        module: its full name.
        arguments: behind it.
        environment: the whole of it.
        output: the descriptor that it prints to.
        pass_fds: descriptors that it has by the same numbers.
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
