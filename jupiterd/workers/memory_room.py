"""Whether something failed because memory ran out, and doing it with less at a time then.

Owns the question and the halving. Doesn't know what is computed.
"""

import ctypes
import gc
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from jupiterd.cycle.base.work_item import HALVINGS
from jupiterd.errors import ModelTooLargeError

Result = TypeVar("Result")

DOCUMENT = "document"
NO_ROOM_FOR_ONE = "take its largest documents out of the source, or let a larger machine read it"

NO_MEMORY = ("can't allocate memory", "Unable to allocate", "Attempting to allocate", "bad_alloc")
"""What torch on a CPU, MLX and C++ say when memory runs out."""

_MMAP_THRESHOLD = -3
"""What `malloc.h` calls M_MMAP_THRESHOLD."""
_LARGE_BYTES = 1 << 20
_LEAST_LARGE_BYTES = 128 << 10
"""What glibc begins with."""


def is_out_of_memory(error: Exception) -> bool:
    """Say whether memory ran out; torch has a class for it on GPUs, and else words alone."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in NO_MEMORY)


def halved(usual: int, params: Mapping[str, Any], noun: str) -> int:
    """Return how many are begun with, where a worker of this item was killed so often before.

    Raises:
        ModelTooLargeError: it was killed with a single one.
    """
    left = usual >> int(params.get(HALVINGS, 0))
    if not left:
        message = f"a worker was killed for memory with a single {noun} at a time"
        raise ModelTooLargeError(message, "" if noun != DOCUMENT else NO_ROOM_FOR_ONE)
    return left


def with_room(attempt: Callable[[int], Result], at_a_time: int, noun: str) -> Result:
    """Return what `attempt` returns for the first number that its device has room for.

    Args:
        attempt: told how much it may take at a time; begins anew at each call.
        at_a_time: the first number; each that follows is half of the one before.
        noun: what there is so much of, for people.

    Raises:
        ModelTooLargeError: there is no room for a single one.
    """
    while True:
        try:
            return attempt(at_a_time)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            if at_a_time <= 1:
                message = f"the device runs out of memory with a single {noun} at a time"
                raise ModelTooLargeError(message) from error
        # Here the error is gone, and with it its frames: they hold what filled the memory.
        at_a_time //= 2
        give_back()


def with_room_for_all(
    count: int,
    at_a_time: int,
    attempt: Callable[[Sequence[int]], Iterator[tuple[int, Result]]],
    fewer: Callable[[int], None],
    noun: str,
) -> Iterator[tuple[int, Result]]:
    """Yield what comes of each of so many things, half as many at once where memory runs out.

    What was yielded isn't done again.

    Args:
        count: of the things, which are numbered from 0.
        at_a_time: how many are begun with.
        attempt: does these at once, and yields what comes of each as soon as it is known.
        fewer: told how many are done at once from now on.
        noun: what there is so much of, for people.

    Raises:
        ModelTooLargeError: there is no room for a single one.
    """
    left = list(range(count))
    while left:
        try:
            for number, result in attempt(left[:at_a_time]):
                left.remove(number)
                yield number, result
            continue
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            if at_a_time <= 1:
                message = f"the device runs out of memory with a single {noun} at a time"
                raise ModelTooLargeError(message) from error
        # Here the error is gone, and with it its frames: they hold what filled the memory.
        at_a_time = max(1, min(at_a_time, len(left)) // 2)
        fewer(at_a_time)
        give_back()


def trim_heaps() -> None:
    """Let the system have what was freed here: glibc keeps much of it, in a heap for each thread.

    What one thread has freed another can't use: MLX computes on one of its own, and the copies of a
    checkpoint would come on top of what a step has left behind.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)


def hand_back_large_blocks(least_bytes: int = _LARGE_BYTES) -> None:
    """Have glibc hand back each large block as soon as it is freed, from now on.

    Left to itself it keeps blocks of up to 32 MiB once some were freed, and small ones that come
    between them split the room: a layer that is computed again doesn't fit where the last one lay.
    Each large block costs a call of the system, and pages that are filled with zeros: a tenth to a
    quarter of the time of what computes on a CPU.

    least_bytes: of a large one, where that is less than a mebibyte
    """
    threshold = max(_LEAST_LARGE_BYTES, min(least_bytes, _LARGE_BYTES))
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, threshold)


def give_back() -> None:
    """Let engines hand back what they keep for later; only those that are loaded can have some."""
    gc.collect()
    if torch := sys.modules.get("torch"):
        torch.cuda.empty_cache()
    if mlx := sys.modules.get("mlx.core"):
        mlx.clear_cache()
