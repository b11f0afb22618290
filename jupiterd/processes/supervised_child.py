"""One process behind a keeper: starts it, reads its output, signals it.

Owns its pipes and its group. Doesn't know what it runs. The pipes are our own: with asyncio's, the
end of the process would stay unnoticed as long as a child of it holds them open.
"""

import asyncio
import contextlib
import os
import signal
import sys
import termios
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jupiterd.processes import umask

KEEPER: Final = Path(__file__).resolve().parent / "standalone" / "keeper.py"


@dataclass(frozen=True)
class ChildProgram:
    """The program to start."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    folder: str
    pass_fds: Sequence[int] = ()
    window: tuple[int, int] = (0, 0)
    """Rows and columns of its terminal; (0, 0): it writes into pipes."""


class SupervisedChild:
    """A running process; only `start_supervised` creates it."""

    def __init__(self, process: asyncio.subprocess.Process, lifeline: int) -> None:
        self.outputs: dict[bool, asyncio.StreamReader] = {}
        """Its output; True: standard error. A terminal joins both under False."""
        self._process = process
        self._lifeline = lifeline
        self._transports: list[asyncio.BaseTransport] = []
        self._descriptors: list[int] = []

    @property
    def pid(self) -> int:
        """Return the keeper's process id, which is also the group's."""
        return self._process.pid

    def resize(self, rows: int, columns: int) -> None:
        """Set the size of its terminal, if it has one."""
        for descriptor in self._descriptors:
            if os.isatty(descriptor):
                termios.tcsetwinsize(descriptor, (rows, columns))

    async def listen(self, descriptor: int, *, is_error: bool) -> None:
        """Start to read one of its outputs."""
        reader = self.outputs[is_error] = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", 0)
        )
        self._transports.append(transport)
        self._descriptors.append(descriptor)

    async def wait(self) -> int:
        """Wait for its end and return its status; 128 plus a signal's number if that ended it.

        Its whole group has been killed by then.
        """
        status = await self._process.wait()
        self._signal_group(signal.SIGKILL)
        return status if status >= 0 else 128 - status

    def signal(self, number: int) -> None:
        """Signal it and all processes of its group, if it still runs."""
        if self._process.returncode is None:
            self._signal_group(number)

    def let_go(self) -> None:
        """Close the pipes and the lifeline; if it still runs, its keeper ends it."""
        for transport in self._transports:
            transport.close()
        self._transports.clear()
        self._descriptors.clear()
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1

    def _signal_group(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


async def start_supervised(program: ChildProgram) -> SupervisedChild:
    """Start a program behind a keeper of its own."""
    theirs, lifeline = os.pipe()
    output, print_fd = _output_ends(program.window)
    has_terminal = all(program.window)  # one for both, else lines come out of order
    errors, error_fd = (output, print_fd) if has_terminal else os.pipe()
    ours, theirs_all = {lifeline, output, errors}, {theirs, print_fd, error_fd}
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", str(KEEPER), *program.argv,
            env=program.environment,
            cwd=program.folder,
            stdin=theirs,
            stdout=print_fd,
            stderr=error_fd,
            pass_fds=program.pass_fds,
            start_new_session=True,
            umask=umask.usual(),
        )  # fmt: skip
    except BaseException:
        for descriptor in ours:
            os.close(descriptor)
        raise
    finally:
        for descriptor in theirs_all:
            os.close(descriptor)
    child = SupervisedChild(process, lifeline)
    try:
        await child.listen(output, is_error=False)
        if not has_terminal:
            await child.listen(errors, is_error=True)
    except BaseException:  # also if cancelled: the caller never gets the child
        if not has_terminal and True not in child.outputs:
            os.close(errors)
        child.let_go()
        child.signal(signal.SIGKILL)
        await child.wait()
        raise
    return child


def _output_ends(window: tuple[int, int]) -> tuple[int, int]:
    """Return the ends to read and to write: of a pipe, or of a terminal of this size."""
    if not all(window):
        return os.pipe()
    ours, theirs = os.openpty()
    how = termios.tcgetattr(theirs)
    how[1] &= ~termios.OPOST  # pass the output unchanged; the user's terminal converts newlines
    termios.tcsetattr(theirs, termios.TCSANOW, how)
    termios.tcsetwinsize(ours, window)
    return ours, theirs
