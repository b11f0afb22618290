"""A script under `jupiterctl launch` on two machines of a lab, struck while it runs.

Owns starting it and reading its losses. Doesn't know what strikes it.
"""

import asyncio
import os
import re
import subprocess
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support.daemons.cluster import BIN
from tests.support.network.machines import Machine, Machines, machines_on

JOIN_S = 30.0
LOSS = re.compile(r"^(?:\r?)\[rank (\d)\].*?[Ii]ter (\d+):.*?loss ([\d.]+)", re.MULTILINE)


class Launched:
    """A running launch, typed on one machine."""

    def __init__(
        self, machine: Machine, folder: Path, argv: Sequence[str], options: Sequence[str] = ()
    ) -> None:
        self._said = b""
        command = ["--state-dir", str(machine.state_dir), "launch", "--nodes", "all", "--verbose"]
        self.process = subprocess.Popen(
            [
                *machine.prefix,
                BIN / "jupiterctl",
                *command,
                "--per-node",
                "1",
                *options,
                "--",
                *argv,
            ],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )

    @property
    def said(self) -> str:
        return self._said.decode(errors="replace")

    async def read_until(self, words: str) -> None:
        """Read on until these words came, or to the end."""
        while words not in self.said and await self.read_line():
            pass

    async def read_line(self) -> bool:
        """Read one line more; say whether there was one."""
        assert self.process.stdout is not None
        line = await asyncio.to_thread(self.process.stdout.readline)
        self._said += line
        return bool(line)

    async def end(self) -> int:
        """Read to the end; return the status."""
        await self.read_until("\0")
        status = await asyncio.to_thread(self.process.wait)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return status

    def losses(self) -> dict[tuple[int, int], str]:
        """Return what each rank said of each step, which must be once."""
        found = LOSS.findall(self.said)
        told = {(int(rank), int(step)): loss for rank, step, loss in found}
        assert len(told) == len(found), "nothing is said twice"
        return told


@asynccontextmanager
async def two_machines(folder: Path) -> AsyncGenerator[Machines]:
    """Run daemons that let members run scripts."""
    async with machines_on(2, folder, ("--allow-scripts",)) as machines:
        await machines.one_cluster(JOIN_S)
        await machines.say_yes()
        yield machines
