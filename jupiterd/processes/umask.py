"""Sets the permissions of new files, and remembers the user's own umask.

Owns the umask: only the user may read the daemon's files; a user's script writes with the umask
that the daemon started with.
"""

import os

_PRIVATE = 0o077

_usual: int | None = None


def be_private() -> None:
    """Make every file that this process and its workers create private to the user."""
    global _usual  # noqa: PLW0603 - a process has one umask
    _usual = os.umask(_PRIVATE)


def usual() -> int:
    """Return the umask that this process started with; -1 if it was never changed."""
    return -1 if _usual is None else _usual  # -1: unchanged, as for `subprocess`
