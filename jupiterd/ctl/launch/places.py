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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jupiterd.ctl.launch.machines import Machine, check_alike
from jupiterd.ctl.launch.run import Site
from jupiterd.gang.script import Ended, ScriptGroup, free_ports, start_script
from jupiterd.gang.script_messages import event_from_proto, order_to_proto
from jupiterd.gang.script_plan import MLX, Place, ScriptOrder, orders, ring_ports
from jupiterd.gang.scripts.by_machine import Devices
from jupiterd.hardware.script_devices import script_devices
from jupiterd.processor_limits import usable_cores
from jupiterd.rpc.script_pb2 import ScriptRequest

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from jupiterd.client.channel import ControlChannel
    from jupiterd.cluster.hardware import Gpu
    from jupiterd.ctl.launch.surroundings import Wanted
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


@dataclass(frozen=True)
class Prepared:
    """A launch of which everything is known, and nothing runs yet."""

    wanted: "Wanted"
    places: tuple[Place, ...]
    machines: tuple[Machine, ...]
    orders: tuple[ScriptOrder, ...]
    own: str = ""
    """The id of this machine; empty where nobody else takes part."""
    channel: "ControlChannel | None" = None


async def prepare(stack: AsyncExitStack, state_dir: Path, wanted: "Wanted") -> Prepared:
    """Find out where the ranks run, and whether they can.

    Raises:
        JupiterError: a machine can't be had, or can't run the script.
    """
    if not wanted.nodes:
        place, machine = place_here(wanted)
        return Prepared(wanted, (place,), (machine,), _orders(wanted, [place]))
    from jupiterd.client.channel import ControlChannel

    channel = await stack.enter_async_context(ControlChannel(state_dir))
    found = await channel.execute("script.prepare", wanted.question(os.environ))
    machines = tuple(map(Machine.of, found["places"]))
    check_alike(wanted, machines)
    places = tuple(_place(told, wanted) for told in found["places"])
    own = str(found["self"])
    return Prepared(wanted, places, machines, _orders(wanted, places), own, channel)


def _orders(wanted: "Wanted", places: Sequence[Place]) -> tuple[ScriptOrder, ...]:
    folder, engine, run = str(wanted.folder), wanted.engine.engine, run_id()
    made = orders(places, wanted.argv, folder, engine, run, wanted.variables)
    return tuple(replace(order, id=run) for order in made)


async def open_sites(stack: AsyncExitStack, prepared: Prepared) -> Sequence[Site]:
    """Start the ranks wherever they run; the stack ends them.

    Raises:
        JupiterError: a machine can't run the script after all.
    """
    channel = prepared.channel
    return [
        await _open_here(stack, place, order)
        if channel is None or place.node == prepared.own
        else RemoteSite(channel, place, order)
        for place, order in zip(prepared.places, prepared.orders, strict=True)
    ]


def _place(told: "Mapping[str, Any]", wanted: "Wanted") -> Place:
    return Place(
        node=str(told["node"]),
        name=str(told["name"]),
        host=str(told["host"]),
        interface=str(told["interface"]),
        processes=int(told["processes"]),
        cores=int(told["cores"]),
        ports=(wanted.master_port or int(told["ports"][0]), *map(int, told["ports"][1:])),
        program=str(told.get("program") or ""),
        folder=str(told.get("folder") or ""),
        threads=int(told.get("threads") or 0),
        visible_devices=told.get("visible_devices"),
        gpus=tuple(map(str, told.get("gpus") or ())),
    )


async def _open_here(stack: AsyncExitStack, place: Place, order: ScriptOrder) -> Site:
    group = await stack.enter_async_context(start_script(order, os.environ))
    return LocalSite(place.name, group)


def place_here(wanted: "Wanted") -> tuple[Place, Machine]:
    """Return this machine's part where nobody else takes part: all stays on loopback."""
    engine = wanted.engine.engine
    asked = Devices.parse(wanted.devices).everywhere
    devices = script_devices(asked, _gpus(engine), engine)
    processes = wanted.processes or (1 if engine == MLX else max(1, len(devices.usable)))
    ports = free_ports(LOOPBACK, 1 + ring_ports(engine, processes))
    place = Place(
        node="",
        name=HERE,
        host=LOOPBACK,
        interface="lo" if sys.platform == "linux" else "lo0",
        processes=processes,
        cores=usable_cores(),
        ports=(wanted.master_port or ports[0], *ports[1:]),
        visible_devices=devices.visible,
        gpus=devices.used_by(processes),
    )
    return place, Machine(HERE)


def _gpus(engine: str) -> "Sequence[Gpu]":
    if engine == MLX and sys.platform == "darwin":
        from jupiterd.hardware.probe import probe

        return probe().gpus
    from jupiterd.hardware.nvidia import probe_nvidia

    return probe_nvidia()


def run_id() -> str:
    """Return a name that no other launch has."""
    return f"jupiter-{secrets.token_hex(4)}"
