"""`jupiterctl monitor`: shows the load of each machine repeatedly."""

import time
from pathlib import Path
from threading import Event
from typing import Any

import click

from jupiterd.ctl.commands import GlobalOptionsCommand
from jupiterd.ctl.invocation import Invocation
from jupiterd.ctl.options.durations import DURATION
from jupiterd.ctl.output.console import Console
from jupiterd.ctl.output.load_blocks import block_lines, local_row, node_rows
from jupiterd.document_schema import SCHEMA
from jupiterd.errors import DaemonUnreachableError, TimedOutError, UsageError

LEAST_INTERVAL_S = 0.2
COUNTING_S = 0.5
"""Seconds over which the processor's load is measured before the first reading."""


@click.command(cls=GlobalOptionsCommand)
@click.option(
    "--interval",
    type=DURATION,
    default="2",
    metavar="TIME",
    help="Time between two looks, such as 5 or 1m; 2 seconds by default.",
)
@click.option("--once", is_flag=True, help="Look once, and end.")
@click.pass_obj
def command(invocation: Invocation, *, interval: float, once: bool) -> None:
    """Show processor, memory and GPUs of each machine, until Ctrl-C.

    One block for each machine of the cluster; without a daemon, this machine alone. What isn't
    known is N/A. A GB is 1024^3 bytes. `RAM process` is what jupiterd and its workers hold.

    \b
    Examples:
      jupiterctl monitor
      jupiterctl monitor --interval 10
      jupiterctl monitor --once -o json | jq '.nodes[].gpus[].utilization_percent'
    """  # noqa: D301 - click's mark for lines that keep their ends
    if interval < LEAST_INTERVAL_S:
        raise UsageError(
            f"{interval:g} s is too short an interval", f"--interval {LEAST_INTERVAL_S:g} or more"
        )
    console, machines = Console.of(invocation), _Machines(invocation.state_dir)
    while True:
        rows, at = machines.rows(console), time.localtime()
        document = {
            "schema": SCHEMA,
            "at": time.strftime("%Y-%m-%dT%H:%M:%S%z", at),
            "source": machines.source,
            "nodes": rows,
        }
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", at)
        console.show(document, lambda rows=rows, stamp=stamp: block_lines(rows, stamp))
        if once:
            return
        pause(interval)


def pause(seconds: float) -> None:
    """Sleep for `seconds`; Ctrl-C ends the sleep."""
    Event().wait(seconds)


class _Machines:
    """The source of the readings: the daemon while it answers, else this machine's own probes."""

    def __init__(self, state_dir: Path) -> None:
        self._state_dir = state_dir
        self._local: Any = None
        self.source = ""
        """`daemon` or `this machine`."""

    def rows(self, console: Console) -> list[dict[str, Any]]:
        """Return a row for each machine; print a notice if the source has changed."""
        try:
            found = node_rows(self._status())
        except (DaemonUnreachableError, TimedOutError) as error:
            self._change("this machine", f"{error.message}; showing this machine alone", console)
            return [self._own_row()]
        self._change("daemon", "jupiterd answers again" if self.source else "", console)
        return found

    def _status(self) -> Any:  # noqa: ANN401 - a document
        from jupiterd.ctl.calls import ask

        return ask(self._state_dir, "status")

    def _own_row(self) -> dict[str, Any]:
        self._local = self._local or ThisMachine()
        return self._local.row()

    def _change(self, source: str, notice: str, console: Console) -> None:
        if source != self.source and notice:
            console.notice(notice)
        self.source = source


class ThisMachine:
    """The load of this machine, measured without a daemon; accelerators are detected once."""

    def __init__(self) -> None:
        import platform

        from jupiterd.hardware.machine_load import GpuLoads, start_counting
        from jupiterd.hardware.probe import probe

        self._name = platform.node()
        self._hardware = probe()
        self._gpus = GpuLoads(self._hardware.gpus)
        start_counting()
        Event().wait(COUNTING_S)

    def row(self) -> dict[str, Any]:
        """Return one reading as a row; without a daemon, its memory is unknown."""
        from jupiterd.hardware.machine_load import processor_and_memory

        loads = [load.to_plain() for load in self._gpus.read()]
        return local_row(self._name, self._hardware.to_plain(), processor_and_memory(), loads, None)
