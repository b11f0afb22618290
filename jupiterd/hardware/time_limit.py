"""A call that may hang, such as one into a driver, and is waited for no longer than a while.

Owns the thread that it runs in. Doesn't know what is called. A thread that hangs can't be ended:
it is left behind, holds up no end of the program, and no second one is started beside it.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as LateError
from typing import Generic, TypeVar

T = TypeVar("T")


class LimitedCall(Generic[T]):
    """The same call again and again, one at a time; one caller at a time."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._running: Future[T] | None = None

    def within(self, limit_s: float) -> T | None:
        """Return what it returns; None where that takes longer, or the last one still runs.

        What it raises comes through.
        """
        if self._running is not None and not self._running.done():
            return None
        self._running = self._start()
        try:
            return self._running.result(limit_s)
        except LateError:
            return None

    def _start(self) -> Future[T]:
        answer: Future[T] = Future()
        threading.Thread(target=self._run, args=(answer,), name="probe", daemon=True).start()
        return answer

    def _run(self, answer: Future[T]) -> None:
        try:
            answer.set_result(self._call())
        except Exception as error:  # noqa: BLE001 - it is the caller's, who may be gone
            answer.set_exception(error)
