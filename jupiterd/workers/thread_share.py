"""With how many threads this process computes: its share of the machine's cores.

Owns telling torch and each OpenBLAS that is loaded. A share that changes while a worker computes is
taken where the work asks for it, between two batches. Doesn't know who else computes here: the
daemon counts.
"""

import ctypes
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

OMP: Final = "OMP_NUM_THREADS"
OPENBLAS: Final = "OPENBLAS_NUM_THREADS"
"""OpenBLAS prefers it to `OMP`."""
VARIABLES: Final = (OMP, "MKL_NUM_THREADS", OPENBLAS, "NUMEXPR_NUM_THREADS", "RAYON_NUM_THREADS")
"""Read by libraries as they load."""

_MAPS: Final = Path("/proc/self/maps")
_SETTERS: Final = tuple(
    f"{prefix}openblas_set_num_threads{suffix}"
    for prefix in ("", "scipy_")
    for suffix in ("", "64_", "_64")
)
"""OpenBLAS's function under the names that distributions, numpy and scipy give it."""


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
    if threads != _Share.taken:
        _Share.taken = threads
        _tell(threads, threads)


def follow(environment: Mapping[str, str] = os.environ) -> None:
    """Compute as if the libraries had been loaded with this environment; for forked processes."""
    _tell(_count(environment, OMP), _count(environment, OPENBLAS, OMP))


def _tell(torch_threads: int, openblas_threads: int) -> None:
    """Set both numbers where they are another; 0 leaves one as it is."""
    torch = sys.modules.get("torch")
    if torch is not None and torch_threads and torch.get_num_threads() != torch_threads:
        torch.set_num_threads(torch_threads)
    if openblas_threads:
        for path in _loaded("openblas"):
            _set_openblas(path, openblas_threads)


def _count(environment: Mapping[str, str], *names: str) -> int:
    """Return the first number that is there; 0 where there is none."""
    given = (environment.get(name, "") for name in names)
    return next((int(text) for text in given if text.isdecimal() and int(text)), 0)


def _loaded(name: str) -> Iterator[str]:
    """Yield the paths of this process's libraries with that in their file names; Linux tells."""
    try:
        lines = _MAPS.read_text().splitlines()
    except OSError:
        return
    paths = {line.split(maxsplit=5)[-1] for line in lines}
    yield from (path for path in sorted(paths) if name in path.rpartition("/")[2])


def _set_openblas(path: str, count: int) -> None:
    try:
        library = ctypes.CDLL(path)
    except OSError:  # its file was replaced meanwhile: it keeps the number it was loaded with
        return
    for name in _SETTERS:
        if (setter := getattr(library, name, None)) is not None:
            setter(count)
