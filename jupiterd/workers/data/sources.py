"""Where real text comes from: one small class for each kind of source.

Owns what belongs to a source, which cluster each file is of and how it is named. Doesn't decode,
split or judge text.
"""

import platform
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from jupiterd.cycle.data_sources import DataSource, FolderSource
from jupiterd.cycle.licenses import PYTHON_LICENSE
from jupiterd.errors import EmptySourceError


@dataclass(frozen=True)
class SourceFile:
    """One file of a source, not read yet."""

    path: Path
    cluster_id: str
    """What it must stay together with in a split."""
    uri: str
    """Where it comes from, without naming anything of this machine."""


class Source(Protocol):
    """A kind of source, open for reading."""

    name: str
    """What people know it by, on this machine."""
    collector: str
    """Name@version of the code that reads it."""
    revision: str
    """Which state of the source this is."""
    license: str
    """SPDX id of everything in it, or `unknown`."""

    def files(self) -> Iterator[SourceFile]:
        """Yield every file in an order that is the same each time.

        Raises:
            EmptySourceError: the source isn't there.
        """
        ...


class PythonStdlib:
    """The standard library of this interpreter; a cluster is a top-level module or package.

    Left out are installed packages, and what differs between two machines with the same Python: the
    folders of tests (Debian ships the library without them; upstream's `test` package alone is more
    than all the rest) and the build's own configuration, which names paths of the machine it was
    built on.
    """

    name = "Python's standard library"
    collector = "python_stdlib@1"
    license = PYTHON_LICENSE

    _LEFT_OUT = frozenset(
        {"site-packages", "dist-packages", "__pycache__", "test", "tests", "idle_test"}
    )

    def __init__(self, root: Path | None = None, revision: str = "") -> None:
        self._root = root or Path(sysconfig.get_paths()["stdlib"])
        self.revision = revision or platform.python_version()

    def files(self) -> Iterator[SourceFile]:
        """Yield every .py file, sorted by name."""
        for name in _names_below(self._root, "**/*.py"):
            top = name.parts[0]
            if self._LEFT_OUT.intersection(name.parts[:-1]) or top.startswith(
                ("_sysconfigdata", "config-")
            ):
                continue
            uri = f"python-stdlib:{self.revision}/{name}"
            yield SourceFile(self._root / name, top.removesuffix(".py"), uri)


class Folder:
    """Files below a folder; a cluster is a file's topmost folder, or the stem of a lone file."""

    collector = "folder@1"
    revision = ""

    def __init__(self, source: FolderSource) -> None:
        self._root = Path(source.path).expanduser()
        self.name = f"the folder {self._root}"
        self._glob = source.glob
        self.license = source.license

    def files(self) -> Iterator[SourceFile]:
        """Yield every file that the glob matches, but hidden ones and links that lead out."""
        if not self._root.is_dir():
            raise EmptySourceError(f"the data source {self._root} is no folder on this machine")
        inside = self._root.resolve()
        for name in _names_below(self._root, self._glob):
            path = self._root / name
            if any(part.startswith(".") for part in name.parts):
                continue
            if not path.resolve().is_relative_to(inside):
                continue
            cluster = name.parts[0] if len(name.parts) > 1 else name.stem
            yield SourceFile(path, cluster, f"folder:{self._root.name}/{name}")


def open_source(source: DataSource) -> Source:
    """Return the reader for a domain's data source."""
    return Folder(source) if isinstance(source, FolderSource) else PythonStdlib()


def _names_below(root: Path, glob: str) -> list[PurePosixPath]:
    """Return the files below `root`, relative to it, sorted: a file system's order is chance."""
    found = (path.relative_to(root) for path in root.glob(glob) if path.is_file())
    return sorted((PurePosixPath(name.as_posix()) for name in found), key=str)
