"""Memory that this process needs no more, given back to the system.

Owns what that is: the pages of C memory that were freed, and code and constants of programs that
are used no more.
Doesn't know who used it. Looking for garbage is left to Python: with a large ledger it takes long.
Where the system isn't Linux, or its C library not glibc, less is done or nothing.

Meeting many nodes at once takes megabytes that nobody needs afterwards; glibc keeps them, because
whatever was allocated last lies above them.
"""

import asyncio
import ctypes
import gc
import mmap
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final

GIVE_BACK_S: Final = 30.0
CODE_TURNS: Final = 4
"""Code is let go of each so many times: 7 ms, where freed pages take a fifth of one."""

_MAPS: Final = Path("/proc/self/smaps")
_OF_PROGRAMS: Final = ("r-xp", "r--p")
"""Code, and constants such as tables and texts."""


def keep_what_is_loaded() -> None:
    """Leave what was imported out of Python's looks for garbage: they take far longer with it."""
    gc.freeze()


async def give_back_again_and_again() -> None:
    """Give back freed pages for ever, and code now and then; it takes milliseconds.

    Code that ran at the start alone is most of it. Meeting nodes, elections and answers run more,
    of which an idle daemon needs none.
    """
    for turn in count():
        await asyncio.sleep(GIVE_BACK_S)
        if turn % CODE_TURNS == 0:
            let_go_of_code()
        give_back()


def give_back() -> None:
    """Let the system have the pages on which nothing is left."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)


def let_go_of_code() -> None:
    """Take no page of code as needed: what is used comes back at once from the system's cache."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError, ValueError):
            _let_go_of_code()


def _let_go_of_code() -> None:
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for start, end in code_in(_MAPS.read_text(encoding="utf-8").splitlines()):
        advise(start, end - start, mmap.MADV_DONTNEED)


def code_in(maps: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Yield where code and constants of files lie: mapped to be run or read, never written to."""
    found: tuple[int, int] | None = None
    for row in maps:
        where, *rest = row.split(maxsplit=5)
        if not where.endswith(":"):
            is_code = rest[0] in _OF_PROGRAMS and len(rest) == 5 and rest[4].startswith("/")
            start, _, end = where.partition("-")
            found = (int(start, 16), int(end, 16)) if is_code else None
        elif where == "Anonymous:" and rest[0] != "0":
            found = None
        elif where == "Swap:" and rest[0] == "0" and found is not None:
            yield found
