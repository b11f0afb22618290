"""Machines of a lab for one trial, and looks at them that are quick enough to time them by.

Owns the folder, the lab and the channels of a trial. Doesn't know what is timed.
"""

import asyncio
import contextlib
import socket
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path

from jupiterd.client.channel import ControlChannel
from jupiterd.errors import JupiterError
from tests.support.daemons.cluster import Document
from tests.support.network.lab import lab_of
from tests.support.network.machines import Machine, Machines, Views, in_short, machines_of

START_TIMEOUT_S = 60.0
LOOK_S = 0.02
ANSWER_TIMEOUT_S = 1.0


@contextlib.asynccontextmanager
async def started_machines(count: int) -> AsyncGenerator[tuple[Machines, float]]:
    """Start so many machines, each new; yield them and when that began (monotonic clock)."""
    with tempfile.TemporaryDirectory(prefix="jupiter-bench-") as folder, lab_of(count) as lab:
        began_s = time.monotonic()
        async with machines_of(lab, Path(folder)) as machines:
            yield machines, began_s


@contextlib.asynccontextmanager
async def settled_machines(count: int) -> AsyncGenerator[Machines]:
    """Run so many machines that are one cluster, linked, with roles assigned."""
    async with started_machines(count) as (machines, _):
        await machines.one_cluster(START_TIMEOUT_S)
        await machines.until_all(_have_roles, "roles", START_TIMEOUT_S)
        yield machines


async def until_answering(machine: Machine) -> None:
    """Wait for somebody to listen at the daemon's control socket."""
    path = str(machine.state_dir / "control.sock")
    async with asyncio.timeout(START_TIMEOUT_S):
        while True:
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
                probe.connect(path)
                return
            await asyncio.sleep(LOOK_S)


class Looks:
    """Open channels to daemons that run; one that stops answering is simply not seen."""

    def __init__(self, channels: Sequence[ControlChannel]) -> None:
        self._channels = channels

    async def views(self) -> list[Document | None]:
        """Return what each says of the cluster."""
        return await asyncio.gather(*(_status(channel) for channel in self._channels))

    async def until(self, is_so: Callable[[Views], bool], timeout_s: float) -> float:
        """Look until it is so; return the moment of that look, on the monotonic clock."""
        deadline_s = time.monotonic() + timeout_s
        while True:
            views = await self.views()
            now_s = time.monotonic()
            if is_so(views):
                return now_s
            if now_s > deadline_s:
                raise AssertionError("; ".join(map(in_short, views)))
            await asyncio.sleep(LOOK_S)


@contextlib.asynccontextmanager
async def looking_at(machines: Sequence[Machine]) -> AsyncGenerator[Looks]:
    """Open a channel to each of these."""
    async with contextlib.AsyncExitStack() as stack:
        entered = [
            await stack.enter_async_context(ControlChannel(machine.state_dir))
            for machine in machines
        ]
        yield Looks(entered)


async def _status(channel: ControlChannel) -> Document | None:
    with contextlib.suppress(TimeoutError, JupiterError):
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            return await channel.status("status")
    return None


def _have_roles(views: Views) -> bool:
    return all(
        view is not None and all(node["role"] != "idle" for node in view["nodes"]) for view in views
    )
