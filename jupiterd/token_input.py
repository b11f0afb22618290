"""Where a join token is read from: a file, a pipe or a terminal, and never a command line.

Owns that every user of a machine sees the command lines of all its processes. Doesn't know what a
token looks like inside (`cluster.tokens`).
"""

import sys
from pathlib import Path
from typing import Final

from jupiterd.errors import UsageError

STANDARD_INPUT: Final = "-"
_PREFIX: Final = "jupiter-"
_MAX_CHARACTERS: Final = 4096


def token_from(where: str, option: str) -> str:
    """Return the token that an option names the place of: a file, or `-` for the standard input.

    Raises:
        UsageError: it is the token itself, or there is nothing to read.
    """
    if where == STANDARD_INPUT:
        return _typed() if sys.stdin.isatty() else sys.stdin.readline(_MAX_CHARACTERS).strip()
    path = Path(where).expanduser()
    if where.strip().lower().startswith(_PREFIX) and not path.exists():
        raise UsageError(
            f"{option}: every user of this machine could read a token on a command line",
            f"{option} - asks for it, and {option} FILE reads it from a file",
        )
    return token_in(path)


def token_in(path: Path) -> str:
    """Return what a file holds; raises UsageError where it can't be read."""
    try:
        with path.open(encoding="utf-8") as file:
            return file.read(_MAX_CHARACTERS).strip()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it holds no text"
        raise UsageError(f"no join token can be read from {path}: {reason}") from error


def _typed() -> str:
    from getpass import getpass  # slow to import, and seldom needed

    return getpass("join token (it isn't shown): ").strip()
