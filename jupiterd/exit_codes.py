"""How a command ends, as scripts read it.

Owns the numbers, which never change. Doesn't know which error has which.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """What a command's exit status says to a script."""

    OK = 0
    """Done."""
    FAILED = 1
    """Tried and failed."""
    USAGE = 2
    """The command line or a file given on it is wrong."""
    UNREACHABLE = 3
    """No daemon answers."""
    TIMED_OUT = 4
    """Not done within the time given."""
    REFUSED = 5
    """Understood, and not allowed."""
    NOT_FOUND = 6
    """No such node, domain, cycle or file."""
    CONFLICT = 7
    """Something else stands in the way, such as a running cycle."""
    UNHEALTHY = 8
    """`status --check`, `check sync` or `doctor` found something wrong."""
    INTERRUPTED = 130
    """Ended by Ctrl-C."""
