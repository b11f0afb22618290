"""The standard library of this interpreter; a cluster is a top-level module or package.

Owns what belongs to it. Left out are installed packages, and what differs between two machines with
the same Python: the folders of tests (Debian ships the library without them; upstream's `test`
package alone is more than all the rest) and the build's own configuration, which names paths of the
machine it was built on.
"""

import platform
import sysconfig
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from jupiterd.cycle.base.globs import WantedNames
from jupiterd.cycle.domain.data_sources import PythonStdlibSource
from jupiterd.workers.data.collectors.collector import Found, Visit
from jupiterd.workers.data.collectors.files import (
    Bounds,
    SourceFile,
    Walk,
    documents_of,
    read_within,
)

_MAX_FILES = 100_000

_LEFT_OUT = frozenset(
    {"site-packages", "dist-packages", "__pycache__", "test", "tests", "idle_test"}
)


class PythonStdlib:
    """Python's own modules, offline."""

    name = "Python's standard library"
    collector = "python_stdlib@3"

    def __init__(
        self, source: PythonStdlibSource, root: Path | None = None, version: str = ""
    ) -> None:
        self._source = source
        self._root = root or Path(sysconfig.get_paths()["stdlib"])
        self._version = version or platform.python_version()

    def documents(self, visit: Visit) -> Iterator[Found]:
        """Yield every .py file, sorted by name."""
        names = Walk(self._root, WantedNames("**/*.py"), lambda _name, _reason: None).names()
        files = (self._file(name) for name in names if not _is_left_out(name))
        bounds = Bounds(_MAX_FILES, self._source.max_bytes, self._source.max_document_bytes)
        yield from documents_of(files, visit, bounds, self._source.license, self._version)

    def state(self) -> Iterator[Mapping[str, Any]]:
        """Yield nothing: files are read again, and compared by their bytes."""
        return iter(())

    def _file(self, name: str) -> SourceFile:
        cluster = PurePosixPath(name).parts[0].removesuffix(".py")
        read = partial(read_within, self._root / name, self._source.max_document_bytes)
        return SourceFile(cluster, f"python-stdlib:{self._version}/{name}", name, read)


def _is_left_out(name: str) -> bool:
    parts = PurePosixPath(name).parts
    is_of_the_build = parts[0].startswith(("_sysconfigdata", "config-"))
    return is_of_the_build or not _LEFT_OUT.isdisjoint(parts[:-1])
