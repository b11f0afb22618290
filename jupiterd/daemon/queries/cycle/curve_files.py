"""The curves that ranks of this node have written, thinned out, for whoever wants to see them.

Owns reading each file on from where it was left: a look costs what was written since the last one.
Doesn't know what is written when (`workers.train.report.metrics`), or what is made of several
nodes' curves (`curve_merge`).
"""

import asyncio
import os
import re
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Final

from jupiterd.cycle.base.thinned_curve import DrawnCurve, ThinnedCurve, read_line
from jupiterd.ids import is_hex, short

METRICS_FILE: Final = "metrics.jsonl"
PIECE_BYTES: Final = 1 << 20
MAX_FILES: Final = 16
"""Files whose points stay in memory, some 50 kB each; those requested last."""

_ISLAND: Final = re.compile(r"island-([0-9]{1,6})").fullmatch


class CurveFile:
    """One file, as far as it was read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._inode, self._offset, self._rest = 0, 0, b""
        self.curve = ThinnedCurve()

    def read_on(self) -> None:
        """Read what was written since; a rewritten file is read from its beginning."""
        try:
            with self._path.open("rb") as file:
                status = os.fstat(file.fileno())
                if status.st_ino != self._inode or status.st_size < self._offset:
                    self._inode, self._offset, self._rest = status.st_ino, 0, b""
                    self.curve = ThinnedCurve()
                file.seek(self._offset)
                while piece := file.read(PIECE_BYTES):
                    self._offset += len(piece)
                    self._take(piece)
        except OSError:  # it goes with its run, or was never written
            self._inode, self._offset, self._rest = 0, 0, b""
            self.curve = ThinnedCurve()

    def _take(self, piece: bytes) -> None:
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            if (said := read_line(line.decode("utf-8", "replace"))) is not None:
                self.curve.take(said)


class CurveFiles:
    """The curves in one node's folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: OrderedDict[Path, CurveFile] = OrderedDict()
        self._lock = threading.Lock()

    async def of_run(self, run: str) -> dict[int, DrawnCurve]:
        """Return the curves of a run that were written here, by island; 0: that of its own gang."""
        return await asyncio.to_thread(self._read, run) if is_hex(run) else {}

    def _read(self, run: str) -> dict[int, DrawnCurve]:
        with self._lock:
            return {island: self._curve(path) for island, path in self._paths(short(run))}

    def _paths(self, name: str) -> list[tuple[int, Path]]:
        folder = self._folder / name
        below = folder.glob(f"island-*/{METRICS_FILE}")
        found = [(_ISLAND(path.parent.name), path) for path in sorted(below)]
        islands = [(int(match[1]), path) for match, path in found if match is not None]
        own = folder / METRICS_FILE
        return [*([(0, own)] if own.exists() else []), *islands]

    def _curve(self, path: Path) -> DrawnCurve:
        file = self._files.setdefault(path, CurveFile(path))
        self._files.move_to_end(path)
        while len(self._files) > MAX_FILES:
            self._files.popitem(last=False)
        file.read_on()
        return file.curve.drawn()
