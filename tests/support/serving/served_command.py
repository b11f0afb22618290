"""`jupiterctl model serve` as a process beside a test, for as long as the test wants it.

Owns starting it, reading its lines, and ending it as Ctrl-C does.
"""

import asyncio
import json
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support.daemons.cluster import BIN


class ServedCommand:
    """The process and its lines."""

    def __init__(self, process: asyncio.subprocess.Process, opened: Any) -> None:
        self.process, self.opened = process, opened
        self.url: str = opened["url"]

    async def next_request(self) -> Any:
        """Return what is told of the next request that is over."""
        assert self.process.stdout is not None
        return json.loads(await self.process.stdout.readline())["request"]

    async def interrupt(self) -> int:
        """End it as Ctrl-C does; return its exit status."""
        self.process.send_signal(signal.SIGINT)
        return await self.process.wait()


@asynccontextmanager
async def served_command(state_dir: Path, *arguments: str) -> AsyncGenerator[ServedCommand]:
    """Serve on a port that the system chooses."""
    process = await asyncio.create_subprocess_exec(
        BIN / "jupiterctl", "--state-dir", state_dir, "model", "serve", "--port", "0",
        "-o", "jsonl", *arguments, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        line = await process.stdout.readline()
        yield ServedCommand(process, json.loads(line)["endpoint"])
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
