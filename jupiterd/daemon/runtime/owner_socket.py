"""A unix socket that only its owner may open.

Owns binding it, its permissions, and taking it away. Doesn't know who listens on it.
"""

import os
import socket
from pathlib import Path


def owner_socket(path: Path) -> socket.socket:
    """Return a socket for its owner alone; nobody can connect before it is listened on.

    It is bound by a relative path, because unix sockets refuse long ones.
    """
    remove_socket(path)  # what a daemon that was killed has left
    bound = socket.socket(socket.AF_UNIX)
    try:
        bound.bind(os.path.relpath(path))
        path.chmod(0o600)
    except BaseException:
        bound.close()
        raise
    return bound


def remove_socket(path: Path) -> None:
    """Take it away, if it is there."""
    path.unlink(missing_ok=True)
