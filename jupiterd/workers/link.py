"""A worker's end of the pipe to its daemon.

Owns reading the task, sending frames, and ending when the daemon has gone.
Doesn't know what the task means.
"""

import contextlib
import ctypes
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jupiterd.errors import Bug, JupiterError, StateNotFetchedError, TimedOutError, from_wire
from jupiterd.protocol.frames import (
    LINK_FD_VARIABLE,
    CheckpointWritten,
    Frame,
    FrameReader,
    InputArrived,
    OuterStepArrived,
    OuterStepMissing,
    Preparing,
    Progressed,
    RankListening,
    RankStuck,
    RunTask,
    SaveState,
    StateSaved,
    StopTask,
    StoreAnswered,
    StoreAsked,
    TaskFailed,
    ThreadsShared,
    encode,
)
from jupiterd.workers import thread_share

PROGRESS_INTERVAL_S = 0.2
"""Readings closer together than this are left out: people look twice a second."""

ORPHAN_GRACE_S = 5.0
"""How long a worker outlives its daemon's end of the pipe, for saving what it holds."""

LINGER_S = 60.0
"""How long a rank that can't go on keeps what it holds; its leader may have to be elected first."""

ANSWER_S = 5.0
"""How much longer than its daemon a rank waits for an answer of its gang's store."""

_PR_SET_PDEATHSIG = 1


class Task:
    """What this process was started for, and its way of speaking to the daemon."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._reader = FrameReader()
        self._sending = threading.Lock()
        self._stop = threading.Event()
        self._saving = threading.Lock()
        self._arriving = threading.Condition()
        self._arrived: dict[str, InputArrived] = {}
        self._outer_steps: dict[str, OuterStepArrived | OuterStepMissing] = {}
        """By the step before."""
        self._answers: dict[int, StoreAnswered | None] = {}
        """Of the gang's store, by the numbers of the questions that are open."""
        self._last_question = 0
        self._last_progress_s = float("-inf")
        self.save_state: Callable[[int], CheckpointWritten | None] = lambda _: None
        """Saves the last finished step, if it is a later one than that; any thread calls."""
        self.lingers = False
        """It is a rank of a gang: others may want what is held when the work fails."""
        order, *self._early = self._first_frames()
        self.name: str = order.task
        self.params: Mapping[str, Any] = order.params
        self.threads: int = order.threads
        self.inputs: Mapping[str, Path] = {name: Path(path) for name, path in order.inputs.items()}
        self.output_dir: Path = Path(order.output_dir)
        self.scratch_dir: Path = Path(order.scratch_dir or self.output_dir / "scratch")
        threading.Thread(target=self._listen, name="link", daemon=True).start()

    @property
    def stop_requested(self) -> bool:
        """Say whether the daemon asked for an end; look at it between steps."""
        return self._stop.is_set()

    def inputs_named(self, prefix: str) -> list[Path]:
        """Return the inputs called `prefix` or `prefix.0`, `prefix.1`, ... in that order."""
        found = [name for name in self.inputs if name.partition(".")[0] == prefix]
        return [
            self.inputs[name] for name in sorted(found, key=lambda n: int(n.partition(".")[2] or 0))
        ]

    def arrived(self, name: str, wait_s: float = 0.0) -> Path | None:
        """Return the folder of a late input, waiting so long for it; None: it isn't there yet.

        Raises:
            StateNotFetchedError: it won't come.
        """
        with self._arriving:
            self._arriving.wait_for(lambda: name in self._arrived, wait_s)
            found = self._arrived.get(name)
        if found is not None and not found.path:
            raise StateNotFetchedError(found.reason)
        return None if found is None else Path(found.path)

    def outer_step(self, after: str, wait_s: float = 0.0) -> OuterStepArrived | None:
        """Return the islands' outer step after that one, waiting so long for it; None: not yet.

        Raises:
            StateNotFetchedError: it won't come.
        """
        with self._arriving:
            self._arriving.wait_for(lambda: after in self._outer_steps, wait_s)
            found = self._outer_steps.get(after)
        if isinstance(found, OuterStepMissing):
            raise StateNotFetchedError(found.reason)
        return found

    def progress(self, done: int, total: int, unit: str, **values: float) -> None:
        """Tell how far the work is (total 0: nobody knows); all but the last are thinned out."""
        now = time.monotonic()
        if now - self._last_progress_s < PROGRESS_INTERVAL_S and done != total:
            return
        self._last_progress_s = now
        self.send(Progressed(done, total, unit, values))

    def prepares(self, stage: str, detail: str = "", expected_s: float = 0.0) -> None:
        """Say what is done before the first step; one of `preparing_stage.STAGES`.

        detail: how far it is; expected_s: what it takes at the most, where that is known
        """
        self.send(Preparing(stage, expected_s, detail))

    def checkpoint_written(self, frame: CheckpointWritten) -> None:
        """Hand a complete checkpoint folder to the daemon."""
        self.send(frame)

    def listens(self, port: int, held: int = 0) -> None:
        """Say that this rank of a ring is about to accept its neighbour; see `RankListening`."""
        self.send(RankListening(port, held))

    def ask_store(
        self, verb: str, keys: Sequence[str], values: Sequence[bytes], within_s: float
    ) -> bytes:
        """Ask the store where the gang meets, and return its answer; any thread may.

        Raises:
            TimedOutError: what is asked for hasn't come within that time.
            JupiterError: the store can't be reached, or refuses.
        """
        with self._arriving:
            self._last_question += 1
            number = self._last_question
            self._answers[number] = None
        self.send(StoreAsked(number, verb, tuple(keys), tuple(values), within_s))
        with self._arriving:
            self._arriving.wait_for(lambda: self._answers[number] is not None, within_s + ANSWER_S)
            answer = self._answers.pop(number)
        if answer is None:
            raise TimedOutError("this node's daemon doesn't answer its rank")
        if answer.code:
            raise from_wire(answer.code, answer.message, answer.hint)
        return answer.value

    def wait_for_stop(self, timeout_s: float | None = None) -> None:
        """Block until the daemon asks for an end, or for so long."""
        self._stop.wait(timeout_s)

    def send(self, frame: Frame) -> None:
        """Send one frame; a daemon that has gone is noticed by the listener, not here."""
        with self._sending, contextlib.suppress(OSError):
            self._link.sendall(encode(frame))

    def give_up(self, why: JupiterError) -> None:
        """Say why, and end this process at once, whatever its other threads hang in."""
        self.send(TaskFailed(why.code, why.message, why.hint))
        os._exit(1)

    def linger(self, why: RankStuck) -> None:
        """Say that the work can't go on, and wait until the daemon has taken what is held."""
        self._stop.clear()  # who was asked to stop after the step that failed is still wanted
        self.send(why)
        self._stop.wait(LINGER_S)
        with self._saving:  # what is being written down takes as long as it takes
            pass

    def _first_frames(self) -> tuple[RunTask, *tuple[Frame, ...]]:
        """Return the task, and what came in together with it."""
        while data := self._link.recv(1 << 16):
            match [*self._reader.feed(data)]:
                case [RunTask() as order, *others]:
                    return order, *others
                case _:
                    pass
        raise Bug("the daemon closed the link before it gave a task")

    def _received(self) -> bytes:
        """Return what came in; nothing once the daemon's end is closed, however it was closed."""
        try:
            return self._link.recv(1 << 16)
        except OSError:
            return b""

    def _listen(self) -> None:
        for frame in self._early:
            self._carry_out(frame)
        while data := self._received():
            for frame in self._reader.feed(data):
                self._carry_out(frame)
        if not self.lingers:  # a rank that stopped in order would stop its whole gang with it
            self._stop.set()
            threading.Event().wait(ORPHAN_GRACE_S)
        os._exit(1)

    def _carry_out(self, frame: Frame) -> None:
        match frame:
            case StopTask():
                self._stop.set()
            case InputArrived(name):
                with self._arriving:
                    self._arrived[name] = frame
                    self._arriving.notify_all()
            case OuterStepArrived(after) | OuterStepMissing(after):
                with self._arriving:
                    self._outer_steps = {after: frame}  # each is asked for after the one before
                    self._arriving.notify_all()
            case StoreAnswered(number):
                with self._arriving:
                    if number in self._answers:
                        self._answers[number] = frame
                        self._arriving.notify_all()
            case ThreadsShared(threads):
                thread_share.change(threads)
            case SaveState(after_step):
                with self._saving:
                    self.send(StateSaved(self._saved(after_step)))
            case _:
                pass

    def _saved(self, after_step: int) -> CheckpointWritten | None:
        """Save what there is, in this thread: the main one may hang in a collective for ever."""
        try:
            return self.save_state(after_step)
        except Exception:  # noqa: BLE001 - without it, training goes on from a checkpoint
            traceback.print_exc()
            return None


def open_task() -> Task:
    """Take up the link that the daemon left in the environment, and read the task from it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    return Task(socket.socket(fileno=int(os.environ[LINK_FD_VARIABLE])))
