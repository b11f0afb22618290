"""Batches side by side on a CPU: each in a thread of its own, which computes alone.

Owns the threads. Sixteen threads that share one product meet after each of a model's hundred small
operations; with a batch for each of them they meet nowhere, and what a batch computes stays in its
core's cache. Where another worker begins on this machine, fewer compute at a time at once; more do
from the next model on. Doesn't know what is computed.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import torch

from jupiterd.workers import thread_share

Batch = TypeVar("Batch")
Result = TypeVar("Result")


LOOK_S = 0.2
"""How often a thread that waits for its turn looks whether more may compute again."""


class _Turns:
    """Lets as many threads compute as are this worker's share just now."""

    def __init__(self, usual: int) -> None:
        self._usual = usual
        self._computing = 0
        self._changed = threading.Condition()

    def wait_for(self, work: Callable[[Batch], Result], batch: Batch) -> Result:
        """Return what the work comes to, once it is its turn."""
        with self._changed:
            while self._computing >= thread_share.allowed(self._usual):
                self._changed.wait(LOOK_S)
            self._computing += 1
        try:
            return work(batch)
        finally:
            with self._changed:
                self._computing -= 1
                self._changed.notify()


def side_by_side(
    work: Callable[[Batch], Result], batches: Sequence[Batch], most: int
) -> Iterator[Result]:
    """Yield what `work` returns of each batch, in their order; at most so many at a time.

    With fewer batches than threads of torch, each batch has several.
    """
    thread_share.take()
    threads = torch.get_num_threads()
    workers = min(threads, most, len(batches))
    if workers < 2:
        yield from map(work, batches)
        return
    each = partial(torch.set_num_threads, threads // workers)
    pool = ThreadPoolExecutor(workers, "scoring", initializer=each)
    turns = _Turns(workers)
    try:
        yield from pool.map(partial(turns.wait_for, work), batches)
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)
