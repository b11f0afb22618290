"""The end of a program that writes a file or folder for another process.

Owns what its caller sees: what hindered it is the last line of its output, and its status is 1.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from jupiterd.errors import JupiterError

Write = Callable[[Path, Path], None]
"""Writes the second path from what lies at the first."""


def status_of(write: Write) -> int:
    """Write what the two arguments of the command line name; return the process's status."""
    source, to = map(Path, sys.argv[1:3])
    try:
        write(source, to)
    except (JupiterError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0
