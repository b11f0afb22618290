"""Keeps one machine's part of a script running, whatever happens to the daemon that started it.

Owns the ranks and the store of one order, from start to end, and writes their events. Doesn't know
who reads them, or the ranks of other machines. It is a process of its own in its own session; only
its folder connects it with a daemon.

It reads lines from the folder's pipe: `signal N`, `window ROWS COLUMNS`, `end`, and `asked`
whenever the launch asks for the part. If none comes for the order's `cut_timeout_s` and
`RECONNECT_S`, it ends the ranks: the launch is gone, or is cut off and ends its own ranks.

A daemon starts it by `daemon.scripts.supervisor_process`.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from jupiterd.errors import ConflictError, JupiterError
from jupiterd.processes.script import ScriptGroup, start_script
from jupiterd.processes.script_plan import PortRange, RankOrder, ScriptOrder
from jupiterd.processes.scripts.event_log import EventWriter
from jupiterd.processes.scripts.events import Ending, Over
from jupiterd.processes.scripts.machine_share import MachineShare

MAX_COMMAND_BYTES: Final = 4096
RECONNECT_S: Final = 15.0
"""How much longer than `cut_timeout_s` the part waits, in s, until a connection is made again."""

END_NOTICE_S: Final = 0.5
"""Time between the `Ending` event and the end of the ranks, in s: ranks elsewhere fail because of
it, and the launch must know the reason by then."""

CANT_START_HINT: Final = "free what that machine lacks (its disk, /tmp, processes), then try again"


class ScriptSupervisor:
    """Keeps the ranks of one order; call `keep`."""

    def __init__(self, part: MachineShare, order: ScriptOrder) -> None:
        self._part = part
        self._order = order
        self._reason = ""
        self._rest = b""
        self._group: ScriptGroup | None = None
        self._events: EventWriter | None = None
        self._ending: asyncio.Task[None] | None = None
        self._lease: asyncio.TimerHandle | None = None

    async def keep(self) -> None:
        """Start the ranks, write their events, and return when all have ended."""
        loop = asyncio.get_running_loop()
        commands = self._part.open_commands()
        loop.add_reader(commands, self._hear, commands)
        loop.add_signal_handler(signal.SIGTERM, self._end, "its keeper was told to stop")
        events = self._events = EventWriter(self._part.folder)
        try:
            over = await self._run_ranks(events)
            self._part.write_over(over)
            events.append(over)
        finally:
            loop.remove_reader(commands)
            os.close(commands)
            events.close()

    async def _run_ranks(self, events: EventWriter) -> Over:
        try:
            async with start_script(self._order, os.environ) as group:
                self._group = group
                self._renew_lease()
                async for event in group.events():
                    events.append(event)
        except JupiterError as error:
            return Over(error.message, error.code, error.hint)
        except OSError as error:  # /tmp is full, or no process or terminal is left
            said = f"the ranks can't be started: {error}"
            return Over(said, ConflictError.code, CANT_START_HINT)
        return Over(self._reason)

    def _hear(self, commands: int) -> None:
        with contextlib.suppress(BlockingIOError):
            *lines, self._rest = (self._rest + os.read(commands, MAX_COMMAND_BYTES)).split(b"\n")
            for line in lines:
                with contextlib.suppress(ValueError):
                    self._carry_out(line.decode("ascii").split())

    def _carry_out(self, words: list[str]) -> None:
        match words:
            case ["asked"]:
                self._renew_lease()
            case ["signal", number] if self._group:
                self._group.signal(int(number))
            case ["window", rows, columns] if self._group:
                self._group.resize(int(rows), int(columns))
            case ["end", *reason]:
                self._end(" ".join(reason))
            case _:
                pass

    def _renew_lease(self) -> None:
        """Restart the time after which the ranks end."""
        if self._lease is not None:
            self._lease.cancel()
        after_s = self._order.cut_timeout_s
        loop = asyncio.get_running_loop()
        reason = f"nobody asked for it for {after_s} s"
        self._lease = loop.call_later(after_s + RECONNECT_S, self._end, reason)

    def _end(self, reason: str) -> None:
        if self._group is not None and self._ending is None:
            self._reason = reason
            ending = self._end_ranks(self._group, reason)
            self._ending = asyncio.get_running_loop().create_task(ending)

    async def _end_ranks(self, group: ScriptGroup, reason: str) -> None:
        if self._events is not None:
            self._events.append(Ending(reason))
        await asyncio.sleep(END_NOTICE_S)
        await group.end_ranks()


def order_to_json(order: ScriptOrder) -> bytes:
    """Return an order as JSON, for a supervisor to read."""
    return json.dumps(asdict(order)).encode()


def order_from_json(text: bytes) -> ScriptOrder:
    """Read an order that was written by `order_to_json`."""
    plain: Mapping[str, Any] = json.loads(text)
    ranks = tuple(RankOrder(**rank) for rank in plain["ranks"])
    lists = {name: tuple(plain[name]) for name in ("argv", "window", "gpus", "member_hosts")}
    open_ports = tuple(PortRange(**ports) for ports in plain.get("open_ports", ()))
    fields: dict[str, Any] = {**plain, **lists, "ranks": ranks, "open_ports": open_ports}
    return ScriptOrder(**fields)


def main(folder: Path) -> None:
    """Run the part in this folder to its end, in a process whose parent has exited.

    The caller waits only until this process exits: from then on the new process keeps the part.
    """
    part = MachineShare(folder)
    lock = part.lock()
    order = order_from_json(sys.stdin.buffer.read())
    if os.fork():
        os._exit(0)
    asyncio.run(ScriptSupervisor(part, order).keep())
    os.close(lock)
