"""How the cores of a machine are shared out among the workers that compute on them at a time.

Owns the rule and who computes now: whenever one begins or ends, the others are told their new
share. Doesn't know processes, or how a worker comes to compute with fewer threads (in a worker,
that is `workers.thread_share`).
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from jupiterd.processor_limits import usable_cores

Tell = Callable[[int], None]
"""Is told with how many threads a worker computes from now on."""


def share_of_each(cores: int, workers: int) -> int:
    """Return with how many threads each of so many workers computes; at least one."""
    return max(1, cores // max(1, workers))


class Seat:
    """One worker's share."""

    def __init__(self, *, can_change: bool) -> None:
        """Give it none yet.

        can_change: it computes with its share, whatever that becomes; a rank of a gang has as many
            threads as its gang gave it, and only takes them from the others
        """
        self.threads = 0
        """The share that it was told of last; 0: none, it has what its environment says."""
        self._can_change = can_change
        self._tell: Tell | None = None
        self._wanted = 0

    def hears_by(self, tell: Tell) -> None:
        """Tell a worker that has begun by this, at once if its share is another one by now."""
        self._tell = tell
        self.change(self._wanted)

    def change(self, threads: int) -> None:
        """Let the worker have so many, as soon as it can be told."""
        self._wanted = threads
        if not self._can_change or threads == self.threads:
            return
        if self._tell is not None:
            self._tell(threads)
        elif self.threads:
            return  # its order is written with the first share, and it hears of others later
        self.threads = threads


class ThreadShares:
    """The shares of one daemon's workers."""

    def __init__(self, cores: Callable[[], int] = usable_cores) -> None:
        """cores: asked whenever shares change, for a control group's quota may change, too."""
        self._cores = cores
        self._seats: list[Seat] = []

    @contextmanager
    def seat(self, *, can_change: bool = True) -> Generator[Seat]:
        """Count one more worker, as long as the context is open."""
        seat = Seat(can_change=can_change)
        self._seats.append(seat)
        self._share_out()
        try:
            yield seat
        finally:
            self._seats.remove(seat)
            self._share_out()

    def _share_out(self) -> None:
        threads = share_of_each(self._cores(), len(self._seats))
        for seat in self._seats:
            seat.change(threads)
