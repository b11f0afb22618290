"""Which files a source of tables means: one file, or those of a folder with certain endings.

Owns that choice. Doesn't know what is in them.
"""

from collections.abc import Iterator
from pathlib import Path

from jupiterd.cycle.base.globs import WantedNames
from jupiterd.errors import EmptySourceError
from jupiterd.path_text import path_text
from jupiterd.workers.data.collectors.collector import Visit
from jupiterd.workers.data.collectors.files import Walk
from jupiterd.workers.data.skips import SkipReason


def files_below(path: Path, endings: tuple[str, ...], visit: Visit) -> Iterator[tuple[str, Path]]:
    """Yield (name without the path to it, path) of each file.

    Raises:
        EmptySourceError: there is no such file or folder on this machine.
    """
    if path.is_file():
        yield path_text(path.name), path
        return
    if not path.is_dir():
        raise EmptySourceError(f"there is no file or folder {path_text(path)} on this machine")

    def leave_out(name: str, reason: SkipReason) -> None:
        visit.skips.add(f"{path_text(path.name)}/{path_text(name)}", reason)

    for name in Walk(path, WantedNames("**/*"), leave_out).names():
        if name.endswith(endings):
            yield f"{path_text(path.name)}/{path_text(name)}", path / name
        else:
            visit.skips.add_other(size_of(path / name))


def size_of(path: Path) -> int:
    """Return a file's size in bytes; 0 where it has gone."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
