"""The memory that C code of this process takes, kept in one piece.

Owns this one setting of glibc. It would give each of gRPC's threads an arena of its own, of which
little is ever given back: 5 MB among ten nodes that do nothing. Other C libraries have no such
arenas, and aren't asked.
"""

import ctypes
import sys
from contextlib import suppress
from typing import Final

_M_ARENA_MAX: Final = -8
"""From glibc's malloc.h."""


def share_one_arena() -> None:
    """Let all threads allocate from one arena; before any of them is started."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)
