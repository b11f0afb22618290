"""A path to a socket of the daemon that the operating system accepts.

Owns the workaround for the length limit of unix socket paths. Doesn't use the socket.
"""

import contextlib
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from jupiterd.locations import CONTROL_SOCKET

MAX_PATH_BYTES = 100
"""Linux accepts 107 bytes and macOS 103; this leaves room for a suffix."""

SHORT_FOLDER = "/tmp"  # noqa: S108 - a private folder is made in it, because its path is short
"""The parent of the link's folder; not TMPDIR, which may be as long as the path itself."""


class SocketPath:
    """A path to a socket of a daemon; a context, because a long path needs a symbolic link.

    Sockets refuse paths of more than about a hundred bytes, even if the file system allows them. A
    link to the folder, in a private folder with a short name, avoids that. Changing the process's
    working folder would also do, but all threads share it.
    """

    def __init__(self, state_dir: Path, name: str = CONTROL_SOCKET) -> None:
        self.socket = state_dir / name
        self._cleanup = contextlib.ExitStack()

    def __enter__(self) -> Self:
        """Make the link if the path is too long."""
        self.short = self.socket
        if len(bytes(self.socket)) > MAX_PATH_BYTES:
            import tempfile  # slow to import, and rarely needed

            folder = self._cleanup.enter_context(
                tempfile.TemporaryDirectory(prefix="jupiter-", dir=SHORT_FOLDER)
            )
            link = Path(folder) / "s"
            link.symlink_to(self.socket.parent)
            self.short = link / self.socket.name
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the link."""
        self._cleanup.close()

    @property
    def target(self) -> str:
        """Return the socket's gRPC target; special characters, such as spaces, are escaped."""
        return f"unix:{quote(str(self.short))}"
