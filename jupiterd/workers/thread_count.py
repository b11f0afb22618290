"""Lets libraries that were loaded with one thread compute with a worker's own number.

Owns telling them. Doesn't know who loaded them, or how the number was chosen.
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

_MAPS: Final = Path("/proc/self/maps")
_SETTERS: Final = tuple(
    f"{prefix}openblas_set_num_threads{suffix}"
    for prefix in ("", "scipy_")
    for suffix in ("", "64_", "_64")
)
"""OpenBLAS's function under the names that distributions, numpy and scipy give it."""


def use_threads(environment: Mapping[str, str] = os.environ) -> None:
    """Set how many threads torch and each OpenBLAS use, as if loaded with this environment."""
    torch = sys.modules.get("torch")
    count = _count(environment, OMP)
    if torch is not None and count and torch.get_num_threads() != count:
        torch.set_num_threads(count)
    if count := _count(environment, OPENBLAS, OMP):
        for path in _loaded("openblas"):
            _set_openblas(path, count)


def _count(environment: Mapping[str, str], *names: str) -> int:
    """Return the first number that is there; 0 where there is none."""
    given = (environment.get(name, "") for name in names)
    return next((int(text) for text in given if text.isdecimal() and int(text)), 0)


def _loaded(name: str) -> Iterator[str]:
    """Yield the paths of this process's libraries with that in their file names."""
    paths = {line.split(maxsplit=5)[-1] for line in _MAPS.read_text().splitlines()}
    return (path for path in sorted(paths) if name in path.rpartition("/")[2])


def _set_openblas(path: str, count: int) -> None:
    try:
        library = ctypes.CDLL(path)
    except OSError:  # its file was replaced meanwhile: it keeps the number it was loaded with
        return
    for name in _SETTERS:
        if (setter := getattr(library, name, None)) is not None:
            setter(count)
