"""What the daemon's process takes of the machine: memory and open files.

Owns glibc's arenas, giving freed pages and unused code back to the system, and the limit of open
files. Doesn't know who uses them. Where the system isn't Linux, or its C library isn't glibc, less
is done or nothing.
"""

import asyncio
import ctypes
import gc
import mmap
import resource
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final

TRIM_EVERY_S: Final = 30.0
CODE_TURNS: Final = 4
"""Code is released at one trim of so many: that takes 7 ms, freed pages take a fifth of one."""

MAX_OPEN_FILES: Final = 65_536
"""More only costs a program that walks through all of them, such as a child that closes them."""

_M_ARENA_MAX: Final = -8
"""From glibc's malloc.h."""
_MAPS: Final = Path("/proc/self/smaps")
_CODE_OR_CONSTANTS: Final = ("r-xp", "r--p")


def use_one_malloc_arena() -> None:
    """Let all threads allocate from one arena; call it before any of them is started.

    glibc would give each of gRPC's threads an arena of its own, of which little is ever given back:
    5 MB among ten nodes that do nothing.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


def freeze_loaded_objects() -> None:
    """Leave what was imported out of Python's garbage collections: they take far longer with it."""
    gc.freeze()


async def trim_memory_periodically() -> None:
    """Release freed pages for ever, and code now and then; a turn takes milliseconds.

    Meeting many nodes at once takes megabytes that nobody needs afterwards; glibc keeps them,
    because what was allocated last lies above them. Most code runs at the start alone; meetings,
    elections and answers run more, of which an idle daemon needs none. No garbage is collected
    here: with a large ledger that takes long.
    """
    for turn in count():
        await asyncio.sleep(TRIM_EVERY_S)
        if turn % CODE_TURNS == 0:
            release_code()
        release_freed_pages()


def release_freed_pages() -> None:
    """Give the system the pages of C memory on which nothing is left: malloc_trim(3)."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)


def release_code() -> None:
    """Unmap the pages of code, see madvise(2); those in use come back from the system's cache."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError, ValueError):
            advise = ctypes.CDLL(None).madvise
            advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
            for start, end in code_ranges(_MAPS.read_text(encoding="utf-8").splitlines()):
                advise(start, end - start, mmap.MADV_DONTNEED)


def code_ranges(smaps: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each file's code and constants that nobody wrote to; see proc(5)."""
    found: tuple[int, int] | None = None
    for row in smaps:
        where, *rest = row.split(maxsplit=5)
        if not where.endswith(":"):
            is_code = rest[0] in _CODE_OR_CONSTANTS and len(rest) == 5 and rest[4].startswith("/")
            start, _, end = where.partition("-")
            found = (int(start, 16), int(end, 16)) if is_code else None
        elif where == "Anonymous:" and rest[0] != "0":
            found = None
        elif where == "Swap:" and rest[0] == "0" and found is not None:
            yield found


def raise_open_file_limit() -> int:
    """Raise the soft limit as far as it is useful and allowed; return what holds now.

    Hundreds of connections and the files of a transfer are more than the 256 of macOS.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = useful_file_limit(soft, hard)
    if wanted != soft:
        with suppress(OSError, ValueError):  # macOS may refuse what it calls unlimited
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def useful_file_limit(soft: int, hard: int) -> int:
    """Return the soft limit to set: one that is higher already stays."""
    if soft == resource.RLIM_INFINITY:
        return soft
    highest = MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_OPEN_FILES)
    return max(soft, highest)
