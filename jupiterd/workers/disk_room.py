"""Whether something failed because the disk is full.

Owns this question alone. Doesn't know what was written.
"""

import errno
import os
import sqlite3


def is_out_of_room(error: Exception) -> bool:
    """Say whether the disk is full; safetensors and the like tell it in words alone."""
    if isinstance(error, sqlite3.OperationalError):
        return error.sqlite_errorname in {"SQLITE_FULL", "SQLITE_IOERR_WRITE"}
    number = error.errno if isinstance(error, OSError) else None
    return number in {errno.ENOSPC, errno.EDQUOT} or os.strerror(errno.ENOSPC) in str(error)
