"""The port at which a rank of an MLX ring accepts its neighbour.

Owns waiting until the rank really listens there. It can't tell that itself: MLX holds Python's lock
from before it listens until the ring is formed. A neighbour that dials earlier tries again only
after a second. Doesn't know rings.
"""

import asyncio

import psutil

from jupiterd.protocol.frames import RankListening

LOOK_EVERY_S = 0.004
WAIT_S = 1.0
"""A neighbour loses as much that dials too early."""


async def wait_for(pid: int, told: RankListening) -> None:
    """Wait until that process listens at the port with one socket more than it held before.

    Where the system doesn't say what a process listens at, it is taken at its word.
    """
    try:
        async with asyncio.timeout(WAIT_S):
            for _ in range(round(WAIT_S / LOOK_EVERY_S)):
                if await asyncio.to_thread(_listeners, pid, told.port) > told.held:
                    return
                await asyncio.sleep(LOOK_EVERY_S)
    except (TimeoutError, psutil.Error, OSError):
        return


def _listeners(pid: int, port: int) -> int:
    """Return how many sockets of a process listen at a port."""
    found = psutil.Process(pid).net_connections("tcp")
    return sum(each.status == psutil.CONN_LISTEN and each.laddr.port == port for each in found)
