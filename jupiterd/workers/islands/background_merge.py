"""What an island's rank does while it trains: pack its pseudo-gradient, merge those of all.

Owns one thread, in which one thing is done after another. Doesn't know what is done. numpy and zstd
let other threads run meanwhile.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

Result = TypeVar("Result")


class BackgroundMerge(Generic[Result]):
    """One rank's thread; it works out results that are asked for by name."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "beside")
        self._begun: list[Future[None]] = []
        self._merging: tuple[str, Future[Result]] | None = None

    def begin(self, work: Callable[[], None]) -> None:
        """Have something done; what goes wrong is raised by `check`."""
        self._begun.append(self._thread.submit(work))

    def check(self) -> None:
        """Raise what went wrong in anything that is done, if anything did."""
        done = [each for each in self._begun if each.done()]
        self._begun = [each for each in self._begun if not each.done()]
        for each in done:
            each.result()

    def result(self, name: str, work: Callable[[], Result]) -> Future[Result]:
        """Return what is worked out under that name, or begin with it."""
        if self._merging is None or self._merging[0] != name:
            self._merging = (name, self._thread.submit(work))
        return self._merging[1]
