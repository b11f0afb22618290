"""A path to a socket of the daemon that the operating system accepts.

Owns working around the limit on unix socket paths. Doesn't know who talks over the socket.
"""

import contextlib
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from jupiterd.locations import CONTROL_SOCKET

MAX_PATH_BYTES = 100
"""Linux takes 107 bytes and macOS 103; a little less, for whoever joins a suffix."""

SHORT_FOLDER = "/tmp"  # noqa: S108 - a private folder is made in it, because its path is short
"""Where the folder of the link lies; TMPDIR may be as long as the path itself."""


class SocketPath:
    """A path to a socket of a daemon; a context, because a long path needs a symbolic link.

    Sockets refuse paths of more than about a hundred bytes, whatever the file system takes. A link
    to the folder, in a private folder with a short name, avoids that without a change of the
    process's working folder, which all threads share.
    """

    def __init__(self, state_dir: Path, name: str = CONTROL_SOCKET) -> None:
        self.socket = state_dir / name
        self._cleanup = contextlib.ExitStack()

    def __enter__(self) -> Self:
        """Make the link where the path needs one."""
        self.short = self.socket
        if len(bytes(self.socket)) > MAX_PATH_BYTES:
            import tempfile  # slow to import, and seldom needed

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
        """Take the link away."""
        self._cleanup.close()

    @property
    def target(self) -> str:
        """Return the name gRPC knows the socket by; odd characters, such as spaces, are escaped."""
        return f"unix:{quote(str(self.short))}"
