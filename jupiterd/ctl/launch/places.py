"""Where a launched script runs: this machine, or the requested ones of the cluster.

Owns opening a site on each. Doesn't follow the ranks (`run`). This machine's ranks are children of
jupiterctl and need no daemon; the daemons of other machines start the ranks there (`remote_site`).
"""

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jupiterd.ctl.launch.machines import MachineAnswer, check_alike
from jupiterd.ctl.launch.site import Site
from jupiterd.errors import JupiterError
from jupiterd.hardware.script_devices import script_devices
from jupiterd.processes.script import ScriptGroup, free_ports, start_script
from jupiterd.processes.script_plan import (
    MLX,
    LaunchAttempt,
    MachinePart,
    ScriptOrder,
    orders,
    ring_ports,
)
from jupiterd.processes.scripts.by_machine import Devices
from jupiterd.processor_limits import usable_cores
from jupiterd.protocol.commands.script_commands import ReportRefusedConnections
from jupiterd.protocol.frames import ConnectionsRefused

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from jupiterd.client.channel import ControlChannel
    from jupiterd.cluster.values.hardware import Gpu
    from jupiterd.ctl.launch.launch_request import LaunchRequest
    from jupiterd.processes.scripts.events import ScriptEvent

LOOPBACK: Final = "127.0.0.1"
HERE: Final = "this machine"
REPORT_TIMEOUT_S: Final = 2.0


class LocalSite:
    """This machine's ranks, which jupiterctl starts itself."""

    def __init__(
        self, place: MachinePart, group: ScriptGroup, channel: "ControlChannel | None" = None
    ) -> None:
        """Store the ranks; `channel`: to the daemon that gets reports of refused connections."""
        self.name = place.name
        self.processes = place.processes
        self._group = group
        self._channel = channel

    async def events(self) -> "AsyncGenerator[ScriptEvent]":
        """Yield the events of the ranks; report refused connections to the daemon."""
        async with aclosing(self._group.events()) as events:
            async for event in events:
                if isinstance(event, ConnectionsRefused):
                    await self._report_refused_connections(event)
                else:
                    yield event

    async def _report_refused_connections(self, knocked: ConnectionsRefused) -> None:
        if self._channel is not None:
            note = ReportRefusedConnections(count=knocked.count, hosts=tuple(knocked.hosts))
            with suppress(JupiterError, TimeoutError):  # the daemon restarts: one report is lost
                async with asyncio.timeout(REPORT_TIMEOUT_S):
                    await self._channel.execute(note.VERB, note.to_plain())

    async def signal(self, number: int) -> None:
        """Send a signal to all ranks."""
        self._group.signal(number)

    async def resize(self, rows: int, columns: int) -> None:
        """Set the size of the ranks' terminals, in rows and columns."""
        self._group.resize(rows, columns)

    def give_up(self) -> None:
        """Do nothing: this machine's ranks can always be reached."""


@dataclass(frozen=True)
class AttemptOpening:
    """How an attempt of a launch is followed: by which id, and with which terminal."""

    attempt: LaunchAttempt
    id: str = ""
    """The launch's id."""
    window: tuple[int, int] = (0, 0)
    """Rows and columns of the ranks' terminal; (0, 0): they have none."""


@dataclass(frozen=True)
class Prepared:
    """A launch that is ready to start: places, machines and orders are known."""

    wanted: "LaunchRequest"
    places: tuple[MachinePart, ...]
    machines: tuple[MachineAnswer, ...]
    orders: tuple[ScriptOrder, ...]
    own: str = ""
    """This machine's node id; empty: the launch uses no other machines."""
    channel: "ControlChannel | None" = None


async def prepare(
    stack: AsyncExitStack, state_dir: Path, wanted: "LaunchRequest", opening: AttemptOpening
) -> Prepared:
    """Return where the ranks will run, after checking that they can.

    Raises:
        JupiterError: a machine isn't available, or can't run the script.
    """
    if not wanted.nodes:
        place, machine = place_here(wanted)
        wanted.program.check_ranks(place.processes)
        return Prepared(wanted, (place,), (machine,), _orders(wanted, [place], opening))
    from jupiterd.client.channel import ControlChannel

    channel = await stack.enter_async_context(ControlChannel(state_dir))
    question = wanted.question(os.environ)
    found = await channel.execute(question.VERB, question.to_plain())
    machines = tuple(map(MachineAnswer.of, found["places"]))
    check_alike(wanted, machines)
    places = tuple(_place(row, wanted) for row in found["places"])
    wanted.program.check_ranks(sum(place.processes for place in places))
    own = str(found["self"])
    return Prepared(wanted, places, machines, _orders(wanted, places, opening), own, channel)


def _orders(
    wanted: "LaunchRequest", places: Sequence[MachinePart], opening: AttemptOpening
) -> tuple[ScriptOrder, ...]:
    folder, engine, attempt = str(wanted.folder), wanted.engine.engine, opening.attempt
    found = orders(places, wanted.argv, folder, engine, attempt, wanted.variables)
    followed = Followed(f"{opening.id}.{attempt.restart}", wanted.cut_timeout_s, opening.window)
    return tuple(replace(followed.added_to(order), open_ports=wanted.open_ports) for order in found)


@dataclass(frozen=True)
class Followed:
    """The fields of an order that say how its ranks are followed."""

    id: str
    cut_timeout_s: int
    window: tuple[int, int]

    def added_to(self, order: ScriptOrder) -> ScriptOrder:
        """Return the order with these fields."""
        return replace(order, id=self.id, cut_timeout_s=self.cut_timeout_s, window=self.window)


async def open_sites(
    stack: AsyncExitStack, prepared: Prepared, notify: Callable[[str], None]
) -> Sequence[Site]:
    """Start this machine's ranks, which the stack ends, and return the sites of all machines.

    notify: gets notices about a machine

    Raises:
        JupiterError: this machine can't start its ranks.
    """
    from jupiterd.ctl.launch.remote_site import RemoteSite

    channel = prepared.channel
    return [
        await _open_here(stack, place, order, channel)
        if channel is None or place.node == prepared.own
        else RemoteSite(channel, place, order, notify)
        for place, order in zip(prepared.places, prepared.orders, strict=True)
    ]


def _place(row: "Mapping[str, Any]", wanted: "LaunchRequest") -> MachinePart:
    return MachinePart(
        node=str(row["node"]),
        name=str(row["name"]),
        host=str(row["host"]),
        interface=str(row["interface"]),
        processes=int(row["processes"]),
        cores=int(row["cores"]),
        ports=(wanted.master_port or int(row["ports"][0]), *map(int, row["ports"][1:])),
        program=str(row.get("program") or ""),
        folder=str(row.get("folder") or ""),
        threads=int(row.get("threads") or 0),
        visible_devices=row.get("visible_devices"),
        gpus=tuple(map(str, row.get("gpus") or ())),
        addresses=tuple(map(str, row.get("addresses") or ())),
        keeps_parts=bool(row.get("keeps_parts")),
    )


async def _open_here(
    stack: AsyncExitStack, place: MachinePart, order: ScriptOrder, channel: "ControlChannel | None"
) -> Site:
    group = await stack.enter_async_context(start_script(order, os.environ))
    return LocalSite(place, group, channel)


def place_here(wanted: "LaunchRequest") -> tuple[MachinePart, MachineAnswer]:
    """Return this machine's part of a launch without other machines; it uses only loopback."""
    engine = wanted.engine.engine
    requested = Devices.parse(wanted.devices).everywhere
    devices = script_devices(requested, _gpus(engine), engine)
    processes = wanted.processes or (1 if engine == MLX else max(1, len(devices.usable)))
    ports = free_ports(LOOPBACK, 1 + ring_ports(engine, processes))
    place = MachinePart(
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
    return place, MachineAnswer(HERE)


def _gpus(engine: str) -> "Sequence[Gpu]":
    if engine == MLX and sys.platform == "darwin":
        from jupiterd.hardware.probe import probe

        return probe().gpus
    from jupiterd.hardware.nvidia import probe_nvidia

    return probe_nvidia()
