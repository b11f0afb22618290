"""Batches side by side on a CPU: each in a thread of its own, which computes alone.

Owns the threads. Sixteen threads that share one product meet after each of a model's hundred small
operations; with a batch for each of them they meet nowhere, and what a batch computes stays in its
core's cache. Doesn't know what is computed.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import torch

Batch = TypeVar("Batch")
Result = TypeVar("Result")


def side_by_side(
    work: Callable[[Batch], Result], batches: Sequence[Batch], most: int
) -> Iterator[Result]:
    """Yield what `work` returns of each batch, in their order; at most so many at a time.

    With fewer batches than threads of torch, each batch has several.
    """
    threads = torch.get_num_threads()
    workers = min(threads, most, len(batches))
    if workers < 2:
        yield from map(work, batches)
        return
    each = partial(torch.set_num_threads, threads // workers)
    pool = ThreadPoolExecutor(workers, "scoring", initializer=each)
    try:
        yield from pool.map(work, batches)
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)
