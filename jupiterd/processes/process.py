"""One worker process: starts it, exchanges frames with it, and makes sure that it ends.

Owns the process, its group and the link to it. Doesn't know what it does, nor any other process.

The worker leads its own session, so that ending the group also ends what the worker started. Frames
pass through a socket pair in both directions; the worker's output goes to a bounded log file. If it
dies, its link closes, and the daemon notices within milliseconds.
"""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from pathlib import Path

from jupiterd.errors import OutOfMemoryError, WorkerCrashedError, WorkerKilledError, WorkFailedError
from jupiterd.processes import interpreter, oom_killer, orphans
from jupiterd.processes.interpreter import Process
from jupiterd.processes.log_file import LogFile
from jupiterd.processes.suspended_workers import until_stopped
from jupiterd.processes.uncancelled import finished
from jupiterd.protocol.frames import (
    LINK_FD_VARIABLE,
    Frame,
    FrameReader,
    InputArrived,
    OuterStepArrived,
    OuterStepMissing,
    RunTask,
    SaveState,
    StopTask,
    StoreAnswered,
    TaskFailed,
    TaskFinished,
    ThreadsShared,
    encode,
)

STOP_GRACE_S = 10.0
"""How long a worker that was asked to stop has to finish its step and save, in s."""

END_GRACE_S = 2.0
"""How long a worker that sent its last frame has to exit by itself, in s."""

TERM_GRACE_S = 0.3
"""Time between SIGTERM and SIGKILL, in s."""

CRASHES = frozenset(
    {signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP}
)
"""Signals that a process causes by its own fault; nobody sends these from outside."""

METALS_OUT_OF_MEMORY = "kIOGPUCommandBufferCallbackErrorOutOfMemory"
"""MLX prints this before it aborts: a thread of Metal throws the exception, and nothing can catch
it there (ml-explore/mlx, pull request 479)."""

_CHUNK_BYTES = 1 << 16

GATHER_S = 0.25
"""Output is written to disk at most this often, in s: a rank prints a line for each step."""


Spawn = Callable[[Mapping[str, str], Sequence[int]], Awaitable[Process | None]]
"""Starts a worker from its environment and descriptors (link, output, others); may return None.

After None the caller starts the worker cold.
"""


async def never_warm(_environment: Mapping[str, str], _descriptors: Sequence[int]) -> None:
    """Start no worker, so that the caller starts it cold."""


class Worker:
    """A running worker process; only `start_worker` creates it."""

    def __init__(self, task: str, process: Process, log: LogFile) -> None:
        self._task = task
        self._process = process
        self._log = log
        self._link_reader = asyncio.StreamReader()
        self._link_writer: asyncio.StreamWriter | None = None
        self._printing: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._has_finished = False
        self._was_stopped = False
        self._output_wanted = asyncio.Event()
        self._oom_kills = oom_killer.kills()

    @property
    def pid(self) -> int:
        """Return the process id, which is also its group's."""
        return self._process.pid

    async def frames(self, *, ends_stopped: bool = False) -> AsyncIterator[Frame]:
        """Yield the worker's frames up to and including the last one (finished or failed).

        With `ends_stopped`, kill a worker that stays stopped (SIGSTOP) for a while.

        Raises:
            WorkFailedError: it died without a last frame; the message gives the cause and output.
        """
        if ends_stopped:
            self._watching = _spawned(self._end_when_stopped(), f"stopped {self.pid}")
        reader = FrameReader()
        while data := await self._receive():
            for frame in reader.feed(data):
                self._has_finished = isinstance(frame, TaskFinished | TaskFailed)
                yield frame
                if self._has_finished:
                    return
        raise await self._died()

    async def _end_when_stopped(self) -> None:
        await until_stopped(self.pid)
        self._was_stopped = True
        self._signal(signal.SIGKILL)

    def ask_to_stop(self, reason: str) -> None:
        """Ask the worker to stop after its running step; don't wait for it."""
        self._send(StopTask(reason))

    def save_state(self, after_step: int) -> None:
        """Ask for the state after the last finished step, if it is later than `after_step`.

        The worker answers with a `StateSaved` frame.
        """
        self._send(SaveState(after_step))

    def share_threads(self, threads: int) -> None:
        """Tell with how many threads the worker computes from now on."""
        self._send(ThreadsShared(threads))

    def hand_in(
        self, arrived: InputArrived | OuterStepArrived | OuterStepMissing | StoreAnswered
    ) -> None:
        """Send what was still on its way when the task started, or what the worker requested."""
        self._send(arrived)

    async def stop(self, reason: str, grace_s: float = STOP_GRACE_S) -> None:
        """Ask the worker to stop, wait `grace_s`, and end it if it still runs; idempotent."""
        self._send(StopTask(reason))
        if not await self._leaves_within(grace_s):
            await self.end()

    async def end(self) -> None:
        """End the whole group: SIGTERM, `TERM_GRACE_S`, SIGKILL; idempotent."""
        try:
            if self._has_finished and await self._leaves_within(END_GRACE_S):
                return
            self._signal(signal.SIGTERM)
            await self._leaves_within(TERM_GRACE_S)
        finally:
            self._signal(signal.SIGKILL)

    async def open_link(self, link: socket.socket, output_fd: int, order: RunTask) -> None:
        """Connect the worker's link and output, and send its order."""
        self._printing = _spawned(self._keep_output(output_fd), f"log of {self.pid}")
        self._link_reader, self._link_writer = await asyncio.open_unix_connection(sock=link)
        self._send(order)

    async def close(self) -> None:
        """Wait until an ended process is gone and its output is on disk; close the link."""
        try:
            await self._process.wait()
            await self._await_output()
        finally:
            for task in (self._printing, self._watching):
                if task is not None:
                    task.cancel()
            if self._link_writer is not None:
                self._link_writer.close()

    def _send(self, frame: Frame) -> None:
        if self._link_writer is not None and not self._link_writer.is_closing():
            self._link_writer.write(encode(frame))

    async def _receive(self) -> bytes:
        try:
            return await self._link_reader.read(_CHUNK_BYTES)
        except ConnectionError:
            return b""

    async def _leaves_within(self, timeout_s: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._process.wait()
        return self._process.returncode is not None

    async def _await_output(self) -> None:
        """Wait for the end of the output, unless a child outside the group holds it open."""
        self._output_wanted.set()
        if self._printing is not None:
            await asyncio.wait({self._printing}, timeout=TERM_GRACE_S)

    def _signal(self, number: signal.Signals) -> None:
        """Signal the whole group, which may outlive the process that leads it."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    async def _died(self) -> WorkFailedError:
        if not await self._leaves_within(END_GRACE_S):
            return WorkFailedError(f"the {self._task} worker (pid {self.pid}) closed its link")
        await self._await_output()
        if why := self._lacked_memory():
            return OutOfMemoryError(f"the {self._task} worker (pid {self.pid}) {why}")
        return self._kind()(f"the {self._task} worker (pid {self.pid}) {self._ending()}")

    def _kind(self) -> type[WorkFailedError]:
        number = -(self._process.returncode or 0)
        if self._was_stopped:
            return WorkFailedError
        if number == signal.SIGKILL:
            return WorkerKilledError
        return WorkerCrashedError if number in CRASHES else WorkFailedError

    def _lacked_memory(self) -> str:
        """Return how the worker ended for lack of memory; empty if it didn't or that's unknown."""
        number = -(self._process.returncode or 0)
        if number == signal.SIGABRT and METALS_OUT_OF_MEMORY in self._log.last_text:
            return "was aborted: Metal had too little memory"
        is_killed = number == signal.SIGKILL and not self._was_stopped
        return oom_killer.how_killed(self.pid, self._oom_kills) if is_killed else ""

    def _ending(self) -> str:
        if self._was_stopped:
            return "had been stopped (SIGSTOP), and was ended"
        status = self._process.returncode or 0
        if status >= 0:
            return f"ended with status {status} and no result{self._last_words()}"
        name = signal.Signals(-status).name
        if name == "SIGKILL":  # from outside: the last line of output explains nothing
            return f"was killed by {name} (signal 9): by somebody, or for want of memory"
        return f"was killed by {name}{self._last_words()}"

    def _last_words(self) -> str:
        return f": {line}" if (line := self._log.last_line) else ""

    async def _keep_output(self, descriptor: int) -> None:
        reader = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", 0)
        )
        try:
            while data := await reader.read(_CHUNK_BYTES):
                with contextlib.suppress(OSError):  # disk full: read on, else it blocks
                    await asyncio.to_thread(self._log.append, data)
                transport.pause_reading()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(GATHER_S):
                        await self._output_wanted.wait()
                transport.resume_reading()
        finally:
            transport.close()


@asynccontextmanager
async def start_worker(
    order: RunTask,
    environment: Mapping[str, str],
    log_path: Path,
    pass_fds: Sequence[int] = (),
    *,
    module: str = "jupiterd.workers",
    warm: Spawn = never_warm,
) -> AsyncGenerator[Worker]:
    """Start a worker process; leaving the context ends it and everything that it started.

    If `warm` starts none, Python runs `module` with the task's name as argument, so that `ps` shows
    what each worker does. While the worker runs, a file beside the log records it for the next
    daemon (see `orphans`).
    """
    remembered = log_path.with_suffix(orphans.SUFFIX)
    log = await asyncio.to_thread(LogFile, log_path)
    ours, theirs = socket.socketpair()
    output_fd, print_fd = os.pipe()
    try:
        descriptors = (theirs.fileno(), print_fd, *pass_fds)
        process = await warm(environment, descriptors)
        if process is None:
            process = await _started_cold(module, order.task, environment, descriptors)
    except BaseException:
        ours.close()
        os.close(output_fd)
        raise
    finally:
        theirs.close()
        os.close(print_fd)
    worker = Worker(order.task, process, log)
    try:
        await worker.open_link(ours, output_fd, order)
        await asyncio.to_thread(orphans.remember, remembered, process.pid)
        yield worker
    finally:
        try:
            await worker.end()
        finally:
            await finished(_let_go(worker, remembered))


async def _let_go(worker: Worker, remembered: Path) -> None:
    await worker.close()
    await asyncio.to_thread(orphans.forget, remembered)


async def _started_cold(
    module: str, task: str, environment: Mapping[str, str], descriptors: Sequence[int]
) -> Process:
    link, output, *others = descriptors
    with_link = {**environment, LINK_FD_VARIABLE: str(link)}
    return await interpreter.start_module(module, (task,), with_link, output, (link, *others))


def _spawned(coroutine: Coroutine[None, None, None], name: str) -> asyncio.Task[None]:
    """Start a task that ends with its process; `Worker.close` cancels it at the latest."""
    return asyncio.get_running_loop().create_task(coroutine, name=name)
