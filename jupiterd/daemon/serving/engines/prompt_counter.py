"""Counts a prompt's tokens with the model's own tokenizer, in a child process.

Owns that process, which is started with the first prompt that could be too long, and ends with its
engine. Doesn't know what a context is.
"""

import asyncio
import json
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from jupiterd.daemon.serving.engines.engine_process import child_environment
from jupiterd.errors import UsageError, WorkFailedError
from jupiterd.formats import printable

COUNTER: Final = "jupiterd.workers.serving.token_counter"
COUNTING_S: Final = 60.0
_FIELDS = ("prompt", "messages", "tools")
_MOST_LINE_BYTES = 1 << 20


class PromptCounter:
    """The counter of one model."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._asking = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._link: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def tokens(self, body: Mapping[str, Any]) -> int:
        """Return how many tokens a request's prompt has.

        Raises:
            UsageError: the model's template refuses the conversation.
            WorkFailedError: it can't be counted.
        """
        asked = {name: body[name] for name in _FIELDS if body.get(name) is not None}
        async with self._asking:
            try:
                async with asyncio.timeout(COUNTING_S):
                    answer = await self._answer(json.dumps(asked).encode() + b"\n")
            except BaseException as error:
                await self.close()  # what it may still say belongs to no other prompt
                if isinstance(error, OSError | ValueError | TimeoutError):
                    raise WorkFailedError("the prompt's tokens couldn't be counted") from error
                raise
        if "error" in answer:
            raise UsageError(f"the prompt can't be read: {printable(str(answer['error']))[:300]}")
        return int(answer["tokens"])

    async def close(self) -> None:
        """End the process."""
        if self._link is not None:
            self._link[1].close()
            self._link = None
        if self._process is not None:
            process, self._process = self._process, None
            if process.returncode is None:
                process.kill()
            await process.wait()

    async def _answer(self, line: bytes) -> Mapping[str, Any]:
        if self._link is None:
            self._link = await self._start()
        reader, writer = self._link
        writer.write(line)
        await writer.drain()
        return json.loads(await reader.readline())

    async def _start(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = await asyncio.create_subprocess_exec(
                    sys.executable, "-P", "-m", COUNTER,
                    str(self._folder), str(theirs.fileno()),
                    env=child_environment("count", 1),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.DEVNULL,
                    stderr=asyncio.subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                )  # fmt: skip
            except BaseException:
                ours.close()
                raise
        return await asyncio.open_unix_connection(sock=ours, limit=_MOST_LINE_BYTES)
