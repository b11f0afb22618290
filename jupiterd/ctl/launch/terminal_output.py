"""What one rank prints, on a terminal as it comes: bars move as they do without a launcher.

Owns putting the rank before each line, wherever the pieces begin and end. Doesn't know who prints.
Several ranks that print side by side are shown by whole lines instead (`rank_output`).
"""

import re
from typing import Final

from jupiterd.ctl.launch.rank_output import RankOutput, prefix

_ENDS: Final = re.compile(rb"([\r\n]+)")


class TerminalOutput(RankOutput):
    """Shows the ranks that are shown piece by piece; of the others it keeps the last lines."""

    _is_within_line = False

    def take(self, rank: int, data: bytes, *, is_error: bool) -> None:
        """Write what came, with the rank at the beginning of each line."""
        if not self.is_shown(rank):
            super().take(rank, data, is_error=is_error)
            return
        shown = b""
        for piece in _ENDS.split(data):
            if piece and not self._is_within_line and not _ENDS.match(piece):
                shown += prefix(rank)
            shown += piece
            if piece:
                self._is_within_line = not _ENDS.match(piece)
        self._write(shown, is_error)

    def finish(self, rank: int) -> None:
        """End the line that a rank left unfinished."""
        if self.is_shown(rank):
            self.settle()
        else:
            super().finish(rank)

    def settle(self) -> None:
        """End the line that is being written, so that something else can be."""
        if self._is_within_line:
            self._is_within_line = False
            self._write(b"\n", True)  # noqa: FBT003 - a callback's signature
