"""Whether the process that forks warm workers can do so here, and how soon after its start.

Owns the measurement. It can't fork where importing its libraries has started threads.
"""

import asyncio
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from jupiterd.errors import WorkFailedError
from jupiterd.processes.environment import worker_environment
from jupiterd.processes.forkserver import open_nursery
from tests.bench.gpu.row import Row

NAME = "nursery, start to its first fork"


def rows() -> Iterator[Row]:
    """Yield the seconds to the first fork, or why there was none."""
    yield asyncio.run(first_fork())


async def first_fork() -> Row:
    """Start a nursery and let it fork once; its worker ends as its link is closed."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environment = worker_environment("train", {"engine": "torch"})
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, ours, theirs:
        log = Path(folder) / "log"
        async with open_nursery("torch", environment, log) as nursery:
            with log.open("ab") as output:
                try:
                    await nursery.bear(environment, theirs.fileno(), output.fileno(), ())
                except WorkFailedError as error:
                    return Row(NAME, None, note=str(error))
            return Row(NAME, time.monotonic() - began_s, "s")
