"""Starting jupiterd and jupiterctl for a test: forked from the run's warm process, or else cold.

Owns asking for such a process, and waiting for it as for a child. A command is started cold, as
ever, where no fork server runs, where what comes before it does more than enter a network, and
where its variables would have been read at start-up. Doesn't know what a test wants of it.
"""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

import msgpack

from jupiterd.ctl.preflight import held_out_look, source_survey
from jupiterd.protocol.frames import LINK_FD_VARIABLE
from tests.support.fork_server import (
    ENVIRONMENTS,
    FOLDER_VARIABLE,
    LOOKS,
    PROGRAMS,
    READERS,
    READING,
    jupiterd_command,
)
from tests.support.warm_start import kind_for

JUPITERCTL = Path(sys.executable).with_name("jupiterctl")

AT_START = ("PYTHON", "LANG", "LC_", "TZ", "LD_", "MALLOC_", "GLIBC_", "OMP_", "OPENBLAS_")
"""How variables begin that are read when a process starts or its libraries are loaded."""

SEARCHED = "PYTHONPATH"
_SEARCHED_HERE = os.environ.get(SEARCHED)
"""xdist gives those of its processes that run tests another one, with what they find anyway."""

LOOK_PROGRAMS = (source_survey.PROGRAM, held_out_look.PROGRAM)
"""What Python runs to look at text."""

ANSWERS_WITHIN_S = 60.0
OWN_NETWORK = "/proc/self/ns/net"
_ENTERS = "--net="
_ENDS_WITH_TEST = ("setpriv", "--pdeathsig", "KILL", "--")
_MAX_MESSAGE_BYTES = 1 << 12
_ROOT = Path(__file__).parents[2]

Command = Sequence[str | Path]


class Program(Protocol):
    """A program that was started, however: what tests do with `subprocess.Popen`."""

    @property
    def pid(self) -> int:
        """Return its process id, which is also its group's and its session's."""
        ...

    @property
    def returncode(self) -> int | None:
        """Return the exit status that was last seen, negative for a signal; None before."""
        ...

    def poll(self) -> int | None:
        """Return the exit status, negative for a signal; None while it runs."""
        ...

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit status once it has ended, or raise `subprocess.TimeoutExpired`."""
        ...

    def send_signal(self, sig: int) -> None:
        """Send it a signal, where it still runs."""
        ...

    def terminate(self) -> None:
        """Ask it to end."""
        ...

    def kill(self) -> None:
        """End it."""
        ...


@dataclass(frozen=True)
class Streams:
    """Descriptors of a program's standard input, output and error."""

    input: int
    output: int
    error: int


@dataclass(frozen=True)
class Fork:
    """What a warm process can do in place of a command."""

    module: str
    arguments: Sequence[str]
    network: str = OWN_NETWORK
    kind: str = PROGRAMS
    """Of warm process."""


class ForkedProgram:
    """A program that was forked from a warm process, which is no child of this one."""

    def __init__(self, pid: int, descriptor: int, connection: socket.socket) -> None:
        self.pid = pid
        self._descriptor = descriptor
        self._connection = connection
        self._status: int | None = None
        self._lock = threading.Lock()

    @property
    def returncode(self) -> int | None:
        """Return the exit status that was last seen, negative for a signal; None before."""
        return self._status

    def poll(self) -> int | None:
        """Return the exit status, negative for a signal; None while it runs."""
        return self._ended(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit status once it has ended, or raise `subprocess.TimeoutExpired`."""
        if (status := self._ended(timeout)) is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
        return status

    def send_signal(self, sig: int) -> None:
        """Send it a signal, where it still runs."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._descriptor, sig)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)

    def _ended(self, timeout_s: float | None) -> int | None:
        with self._lock:
            if self._status is None and _is_readable(self._descriptor, timeout_s):
                data = self._connection.recv(_MAX_MESSAGE_BYTES)
                self._status = msgpack.unpackb(data)["status"] if data else -signal.SIGKILL
                self._connection.close()
                os.close(self._descriptor)
            return self._status


def start_program(
    command: Command, environment: Mapping[str, str], folder: Path, streams: Streams
) -> Program:
    """Start a command in a session of its own.

    Args:
        command: what a network namespace is entered with, if any, the program and its arguments.
        environment: the whole of it.
        folder: that it works in.
        streams: what it reads and prints to.
    """
    fork = fork_for(command)
    is_alike = fork is not None and (fork.kind == READERS or not reads_at_start(environment))
    if fork is not None and is_alike:
        try:
            return _forked(fork, environment, folder, streams)
        except OSError:  # also where it takes too long
            pass
    return subprocess.Popen(
        command,
        stdin=streams.input,
        stdout=streams.output,
        stderr=streams.error,
        cwd=folder,
        env=environment,
        start_new_session=True,
    )


def run_program(
    command: Command,
    timeout_s: float,
    folder: Path | None = None,
    environment: Mapping[str, str] = os.environ,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, and return what it printed; kill it when its time is up.

    Args:
        command: what a network namespace is entered with, if any, the program and its arguments.
        timeout_s: how long it may take; then `subprocess.TimeoutExpired` is raised.
        folder: that it works in; the one of this process where none is given.
        environment: the whole of it; this process's where none is given.
    """
    began_s = time.monotonic()
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as error:
        streams = Streams(subprocess.DEVNULL, output.fileno(), error.fileno())
        program = start_program(command, environment, folder or Path.cwd(), streams)
        try:
            status = program.wait(timeout_s)
        except subprocess.TimeoutExpired as late:
            program.kill()
            program.wait()
            after_s = time.monotonic() - began_s
            printed, complaints = _all_of(output), _all_of(error)
            raise subprocess.TimeoutExpired(command, after_s, printed, complaints) from late
        return subprocess.CompletedProcess(command, status, _all_of(output), _all_of(error))


def start_worker(task: str, environment: Mapping[str, str], link: int) -> Program:
    """Start a worker that is told its task on a link, in this process's network and folder.

    Args:
        task: which it will be told.
        environment: the whole of it, but for the link.
        link: a descriptor of this process.
    """
    with_link = {**environment, LINK_FD_VARIABLE: str(link)}
    nowhere = Streams(subprocess.DEVNULL, subprocess.DEVNULL, subprocess.DEVNULL)
    kind = kind_for(task, environment) if FOLDER_VARIABLE in os.environ else None
    if kind is not None:
        fork = Fork("jupiterd.workers", (task,), kind=kind)
        with contextlib.suppress(OSError):
            return _forked(fork, with_link, Path.cwd(), nowhere, (link,))
    return subprocess.Popen(
        [sys.executable, "-m", "jupiterd.workers", task],
        pass_fds=[link],
        env=with_link,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def start_trainer(
    module: str, arguments: Sequence[str], environment: Mapping[str, str], streams: Streams
) -> Program:
    """Start a module of the tests that trains in a worker's place, in a session of its own.

    Args:
        module: what Python runs.
        arguments: of it.
        environment: the whole of it, as `worker_environment` returns it for an engine.
        streams: what it reads and prints to.
    """
    kind = kind_for("train", environment) if FOLDER_VARIABLE in os.environ else None
    if kind is not None:
        with contextlib.suppress(OSError):
            return _forked(Fork(module, arguments, kind=kind), environment, _ROOT, streams)
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdin=streams.input,
        stdout=streams.output,
        stderr=streams.error,
        cwd=_ROOT,
        env=environment,
        start_new_session=True,
    )


def fork_for(command: Command) -> Fork | None:
    """Return what does the same as a command in a fork; None where it must be started cold."""
    if FOLDER_VARIABLE not in os.environ:
        return None
    words = [str(word) for word in command]
    network = OWN_NETWORK
    if words[0] == "nsenter" and words[1].startswith(_ENTERS):
        network, words = words[1].removeprefix(_ENTERS), words[3:]
        if tuple(words[: len(_ENDS_WITH_TEST)]) == _ENDS_WITH_TEST:  # forks do anyway
            words = words[len(_ENDS_WITH_TEST) :]
    daemon = [str(word) for word in jupiterd_command()]
    if words[: len(daemon)] == daemon:
        return Fork("tests.support.warm_jupiterd", words[len(daemon) :], network)
    if words[0] == sys.executable and tuple(words[1:]) in LOOK_PROGRAMS:
        return Fork(words[-1], (), network, LOOKS)
    if words[0] == sys.executable and words[1:3] == ["-m", READING]:
        return Fork(READING, words[3:], network, READERS)
    if words[0] == str(JUPITERCTL):
        return Fork("tests.support.warm_jupiterctl", words[1:], network)
    return None


def reads_at_start(environment: Mapping[str, str]) -> bool:
    """Say whether a program would have begun otherwise than the warm process has."""
    try:
        read = json.loads((_folder() / ENVIRONMENTS).read_text())[PROGRAMS]
    except OSError:  # it is another user's
        return True
    is_found_alike = environment.get(SEARCHED) in {_SEARCHED_HERE, read.get(SEARCHED)}
    return not is_found_alike or _at_start(read) != _at_start(environment)


def _at_start(environment: Mapping[str, str]) -> dict[str, str]:
    early = {name: value for name, value in environment.items() if name.startswith(AT_START)}
    early.pop(SEARCHED, None)
    return early


def _folder() -> Path:
    return Path(os.environ[FOLDER_VARIABLE])


def _forked(
    fork: Fork,
    environment: Mapping[str, str],
    folder: Path,
    streams: Streams,
    links: Sequence[int] = (),
) -> ForkedProgram:
    """Have a program forked, with some descriptors by the same numbers, or raise OSError."""
    order = {
        "module": fork.module,
        "arguments": list(fork.arguments),
        "environment": dict(environment),
        "numbers": [0, 1, 2, *links],
    }
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        connection.settimeout(ANSWERS_WITHIN_S)
        connection.connect(str(_folder() / fork.kind))
        with contextlib.ExitStack() as opened:
            network, place = (_opened(path, opened) for path in (fork.network, folder))
            given = (streams.output, streams.input, streams.output, streams.error)
            nothing = _opened(os.devnull, opened)
            numbered = [nothing if each == subprocess.DEVNULL else each for each in given]
            socket.send_fds(connection, [msgpack.packb(order)], [network, place, *numbered, *links])
        return _begun(connection)
    except BaseException:
        connection.close()
        raise


def _begun(connection: socket.socket) -> ForkedProgram:
    data, descriptors, _, _ = socket.recv_fds(connection, _MAX_MESSAGE_BYTES, 1)
    if not data:
        raise ConnectionError("the warm process has ended")
    return ForkedProgram(msgpack.unpackb(data)["pid"], descriptors[0], connection)


def _opened(path: str | Path, until: contextlib.ExitStack) -> int:
    descriptor = os.open(path, os.O_RDWR if path == os.devnull else os.O_RDONLY)
    until.callback(os.close, descriptor)
    return descriptor


def _is_readable(descriptor: int, timeout_s: float | None) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(None if timeout_s is None else max(0.0, timeout_s) * 1000))


def _all_of(file: IO[str]) -> str:
    file.seek(0)
    return file.read()
