"""Where a launched script runs: this machine, or those of the cluster that were asked for.

Owns opening a site on each. Doesn't know what becomes of the ranks there (`run`). This
machine's ranks are children of jupiterctl and need no daemon; those of others are run by the
daemons over there.
"""

import asyncio
import os
import secrets
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jupiterd.ctl.console import Console
from jupiterd.ctl.launch.run import Site
from jupiterd.gang.script import Ended, ScriptGroup, free_ports, start_script, usable_cores
from jupiterd.gang.script_messages import MAX_HASHED_BYTES, event_from_proto, order_to_proto
from jupiterd.gang.script_plan import MLX, Place, ScriptOrder, orders, ring_ports
from jupiterd.rpc.script_pb2 import ScriptRequest

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from jupiterd.client.channel import ControlChannel
    from jupiterd.ctl.launch.command import Wanted
    from jupiterd.gang.script import ScriptEvent

LOOPBACK: Final = "127.0.0.1"
HERE: Final = "this machine"


class LocalSite:
    """The ranks that jupiterctl runs itself."""

    def __init__(self, name: str, group: ScriptGroup) -> None:
        self.name = name
        self._group = group

    def events(self) -> "AsyncGenerator[ScriptEvent]":
        """Yield what they print and how they end."""
        return self._group.events()

    async def signal(self, number: int) -> None:
        """Signal all of them."""
        self._group.signal(number)


class RemoteSite:
    """The ranks on another machine, run by its daemon and followed through ours."""

    def __init__(self, channel: "ControlChannel", place: Place, order: ScriptOrder) -> None:
        self.name = place.name
        self._channel = channel
        self._running = {rank.rank for rank in order.ranks}
        self._requests: asyncio.Queue[ScriptRequest] = asyncio.Queue()
        self._requests.put_nowait(ScriptRequest(node=place.node, order=order_to_proto(order)))

    async def events(self) -> "AsyncGenerator[ScriptEvent]":
        """Yield what they print and how they end, until all have; leaving it ends them."""
        call = self._channel.open_script(self._asked())
        try:
            with self._channel.translated():
                async for message in call:
                    event = event_from_proto(message)
                    yield event
                    self._running -= {event.rank} if isinstance(event, Ended) else set()
                    if not self._running:
                        return
        finally:
            call.cancel()

    async def signal(self, number: int) -> None:
        """Signal all of them."""
        if self._running:
            await self._requests.put(ScriptRequest(signal=number))

    async def _asked(self) -> "AsyncGenerator[ScriptRequest]":
        while True:
            yield await self._requests.get()


async def open_sites(
    stack: AsyncExitStack, state_dir: Path, wanted: "Wanted", folder: Path, console: Console
) -> Sequence[Site]:
    """Start the ranks wherever they run; the stack ends them.

    Raises:
        JupiterError: a machine can't be had, or can't run the script.
    """
    if not wanted.nodes:
        place = place_here(wanted)
        made = orders([place], wanted.argv, str(folder), wanted.engine, run_id(), wanted.variables)
        return [await _open_here(stack, place, made[0])]
    from jupiterd.client.channel import ControlChannel

    channel = await stack.enter_async_context(ControlChannel(state_dir))
    own, places = await _places(channel, wanted, folder, console)
    made = orders(places, wanted.argv, str(folder), wanted.engine, run_id(), wanted.variables)
    return [
        await _open_here(stack, place, order)
        if place.node == own
        else RemoteSite(channel, place, order)
        for place, order in zip(places, made, strict=True)
    ]


async def _places(
    channel: "ControlChannel", wanted: "Wanted", folder: Path, console: Console
) -> tuple[str, list[Place]]:
    """Return our own id, and what each machine that was asked for can do."""
    arguments = {
        "nodes": wanted.nodes,
        "per_node": wanted.per_node,
        "engine": wanted.engine,
        "program": wanted.argv[0],
        "folder": str(folder),
        "script": wanted.script,
    }
    found = await channel.execute("script.prepare", arguments)
    _compare(found["places"], wanted.script, console)
    places = [
        Place(
            node=str(told["node"]),
            name=str(told["name"]),
            host=str(told["host"]),
            interface=str(told["interface"]),
            processes=int(told["processes"]),
            cores=int(told["cores"]),
            ports=(wanted.master_port or int(told["ports"][0]), *map(int, told["ports"][1:])),
        )
        for told in found["places"]
    ]
    return str(found["self"]), places


def _compare(places: Sequence["Mapping[str, Any]"], script: str, console: Console) -> None:
    """Say where the script isn't the same: ranks that do different things wait for each other."""
    if not script:
        return
    from blake3 import blake3

    with Path(script).open("rb") as file:
        digest = blake3(file.read(MAX_HASHED_BYTES)).hexdigest()
    for place in places:
        if place["script_hash"] != digest:
            console.notice(f"{script} on {place['name']} isn't the same as here")


async def _open_here(stack: AsyncExitStack, place: Place, order: ScriptOrder) -> Site:
    group = await stack.enter_async_context(start_script(order, os.environ))
    return LocalSite(place.name, group)


def place_here(wanted: "Wanted") -> Place:
    """Return this machine's part where nobody else takes part: all stays on loopback."""
    processes = wanted.per_node or default_processes(wanted.engine)
    ports = free_ports(LOOPBACK, 1 + ring_ports(wanted.engine, processes))
    return Place(
        node="",
        name=HERE,
        host=LOOPBACK,
        interface="lo" if sys.platform == "linux" else "lo0",
        processes=processes,
        cores=usable_cores(),
        ports=(wanted.master_port or ports[0], *ports[1:]),
    )


def default_processes(engine: str) -> int:
    """Return one process for each GPU that torch may use, and one where there is none."""
    if engine == MLX:
        return 1
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return max(1, len([part for part in visible.split(",") if part.strip()]))
    from jupiterd.hardware.nvidia import probe_nvidia

    return max(1, len(probe_nvidia()))


def run_id() -> str:
    """Return a name that no other launch has."""
    return f"jupiter-{secrets.token_hex(4)}"
