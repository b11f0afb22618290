"""A machine's disk: what outlives its process.

Owns writes that are done wholly or not at all (as transactions are), power cuts in the middle of
one, and lack of room. Doesn't know what is written.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from jupiterd.errors import DiskFullError


class PowerCut(Exception):  # noqa: N818 - what happens, not what goes wrong in the code
    """The machine went out during a write: nothing that would come after it happens."""


@dataclass(frozen=True)
class Content:
    """What a restored backup brings back."""

    term: int = 0
    entries: tuple[bytes, ...] = ()
    snapshot: bytes = b""
    obeyed: str = ""


@dataclass
class Disk:
    """Content, and what becomes of the next writes."""

    content: Content = field(default_factory=Content)
    writes: int = 0
    """How many have been done."""
    is_full: bool = False
    writes_left: int | None = None
    """The power goes out during the write that makes this 0; None: it doesn't."""
    is_torn: bool = False
    """Whether that write is lost rather than done."""
    backups: list[Content] = field(default_factory=list[Content])

    def save_term(self, term: int) -> None:
        """Put a term in place of the one before."""
        now = self.content
        self._write(lambda: replace(now, term=term))

    def save_obeyed(self, obeyed: str) -> None:
        """Put the highest order obeyed in place of the one before."""
        now = self.content
        self._write(lambda: replace(now, obeyed=obeyed))

    def append(self, raws: Sequence[bytes]) -> None:
        """Add entries: all of them or none."""
        now = self.content
        self._write(lambda: replace(now, entries=(*now.entries, *raws)))

    def compact(self, snapshot: bytes, kept: Sequence[bytes]) -> None:
        """Put a snapshot in place of the one before and of what it sums up."""
        now = self.content
        self._write(lambda: replace(now, entries=tuple(kept), snapshot=snapshot))

    def _write(self, change: Callable[[], Content]) -> None:
        if self.is_full:
            raise DiskFullError("no room")
        self.writes += 1
        if self.writes_left is not None:
            self.writes_left -= 1
            if self.writes_left <= 0:
                self.writes_left = None
                if not self.is_torn:
                    self.content = change()
                raise PowerCut
        self.content = change()
