"""Which rights new files of this process get, and which a user's own program would give.

Owns the umask: the daemon's files are its user's alone, a script of the user's writes as usual.
"""

import os

_PRIVATE = 0o077

_usual: int | None = None


def be_private() -> None:
    """Have everything that this process and its workers make closed to others, from now on."""
    global _usual  # noqa: PLW0603 - a process has one umask
    _usual = os.umask(_PRIVATE)


def usual() -> int:
    """Return the umask that this process was started with; -1 where it was never changed."""
    return -1 if _usual is None else _usual  # as `subprocess` has it
