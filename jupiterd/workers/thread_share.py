"""With how many threads this process computes: its share of the machine's cores.

Owns telling the libraries that compute. A share that changes while a worker computes is taken where
the work asks for it, between two batches. Doesn't know who else computes here: the daemon counts.
"""

import ctypes
import os
import sys
from contextlib import suppress

VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "RAYON_NUM_THREADS",
)
"""Read by libraries as they load."""


class _Share:
    wanted = 0
    taken = 0


def begin(threads: int) -> None:
    """Compute with so many threads from the start; 0: as the environment says."""
    if threads:
        os.environ.update(dict.fromkeys(VARIABLES, str(threads)))
        change(threads)
        take()


def change(threads: int) -> None:
    """Note another share, to be taken at the next `take`; any thread calls."""
    _Share.wanted = threads


def allowed(usual: int) -> int:
    """Return how many of this many threads may compute just now."""
    return min(usual, _Share.wanted or usual)


def take() -> None:
    """Let the libraries compute with the share, if it is another one.

    The thread that computes calls it: OpenMP counts for each thread by itself.
    """
    threads = _Share.wanted
    if threads == _Share.taken:
        return
    _Share.taken = threads
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(threads)
    with suppress(OSError, AttributeError):  # it is preloaded for MLX, and else absent
        ctypes.CDLL(None).openblas_set_num_threads(threads)
