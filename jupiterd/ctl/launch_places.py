"""Where a launched script runs: this machine, or those of the cluster that were asked for.

Owns opening a site on each. Doesn't know what becomes of the ranks there (`launch_run`). This
machine's ranks are children of jupiterctl and need no daemon; those of others are run by the
daemons over there.
"""

import os
import secrets
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jupiterd.ctl.console import Console
from jupiterd.ctl.launch_run import Site
from jupiterd.gang.script import ScriptGroup, free_ports, start_script, usable_cores
from jupiterd.gang.script_plan import MLX, Place, ScriptOrder, orders, ring_ports

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from jupiterd.ctl.launch import Wanted
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
        await self._group.signal(number)


async def open_sites(
    stack: AsyncExitStack, state_dir: Path, wanted: "Wanted", folder: Path, console: Console
) -> Sequence[Site]:
    """Start the ranks wherever they run; the stack ends them.

    Raises:
        JupiterError: a machine can't be had, or can't run the script.
    """
    place = place_here(wanted)
    order = orders([place], wanted.argv, str(folder), wanted.engine, run_id(), wanted.variables)[0]
    return [await _open_here(stack, place, order)]


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
