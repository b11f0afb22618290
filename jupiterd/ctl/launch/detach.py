"""Letting a launch go on by itself, while the shell has its prompt again.

Owns the second process. Doesn't know what it runs.
"""

import os
from collections.abc import Callable

Begun = Callable[[], None]


def detached(run: Callable[[Begun], int]) -> int:
    """Run something in a process of its own session; return once it has begun, or its status.

    run: is given what it calls once it has begun; what goes wrong before that is still said here
    """
    heard, told = os.pipe()
    process = os.fork()
    if process:
        os.close(told)
        with os.fdopen(heard, "rb") as pipe:
            if pipe.read(1):
                return 0
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    os.close(heard)
    os.setsid()
    return run(lambda: _leave(told))


def _leave(told: int) -> None:
    """Let the terminal go, and say so to the process that waits; only once."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
    with os.fdopen(told, "wb", 0) as pipe:
        pipe.write(b"1")
