"""The folder in which a worker finds again what it had done before it was killed.

Owns who may use it: one process at a time. Doesn't know what is kept there, or when it is removed.
"""

import fcntl
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def own_scratch(wanted: Path, output: Path) -> Generator[Path]:
    """Hold `wanted` for this process; where another one still holds it, begin anew elsewhere."""
    wanted.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (wanted / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            other = output / "scratch"
            other.mkdir(exist_ok=True)
            yield other
            return
        yield wanted
