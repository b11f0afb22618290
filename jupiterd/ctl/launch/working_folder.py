"""The files of a working folder that are sent with a launch: all except those that git ignores.

Owns the list. git makes it if the folder is in a repository; otherwise this module reads
`.gitignore` files as git does. Doesn't read other files, or know where they are sent.
"""

import os
import stat
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from jupiterd.errors import UsageError
from jupiterd.formats import counted, plain, size

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

LIMIT_MIB: Final = 256
MAX_FILES: Final = 20_000
SHOWN_FILES: Final = 3
GIT_TIMEOUT_S: Final = 60.0

_NEVER: Final = frozenset({".git", "__pycache__", ".DS_Store"})
_OF_A_VENV: Final = "pyvenv.cfg"
_LIST: Final = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")


@dataclass(frozen=True)
class WorkingFolder:
    """The files that are sent."""

    root: Path
    sizes: Mapping[str, int]
    """Path relative to the folder -> size in bytes."""
    left_out: tuple[str, ...] = ()
    """Files that can't be sent: links that lead out of the folder, and names that aren't UTF-8."""

    @property
    def size_bytes(self) -> int:
        """Return the total size of the files, in bytes."""
        return sum(self.sizes.values())

    @property
    def shown(self) -> str:
        """Return the number of files and their total size, as a text."""
        return f"{counted(len(self.sizes), 'file')}, {size(self.size_bytes)}"


def working_folder(
    root: Path, also: Sequence[str] = (), limit_mib: int = LIMIT_MIB
) -> WorkingFolder:
    """Return the files to send.

    Args:
        root: the folder.
        also: files and folders below it that are sent although git ignores them.
        limit_mib: the highest total size of all files, in MiB.

    Raises:
        UsageError: the files are too large or too many, there is none, or one of `also` is missing.
    """
    found, left_out = dict[str, int](), list[str]()
    for name in dict.fromkeys([*_listed(root), *_named(root, also)]):
        size_bytes = _travelling(root, name)
        if size_bytes is None:
            left_out.append(name)
        elif size_bytes >= 0:
            found[name] = size_bytes
    shippable = WorkingFolder(root, dict(sorted(found.items())), tuple(sorted(left_out)))
    _check(shippable, limit_mib)
    return shippable


def _check(folder: WorkingFolder, limit_mib: int) -> None:
    if not folder.sizes:
        raise UsageError(f"there is nothing in {folder.root} that could travel", "see .gitignore")
    is_large = folder.size_bytes > limit_mib << 20
    if is_large or len(folder.sizes) > MAX_FILES:
        largest = sorted(folder.sizes, key=folder.sizes.__getitem__, reverse=True)[:SHOWN_FILES]
        shown = ", ".join(f"{plain(name)} {size(folder.sizes[name])}" for name in largest)
        bound = f"{limit_mib} MiB" if is_large else counted(MAX_FILES, "file")
        raise UsageError(
            f"{folder.root} is too large to travel: {folder.shown}, and {bound} may: {shown}",
            "name what isn't needed in a .gitignore"
            + (", or let more travel: --ship-limit MIB" if is_large else ""),
        )


def _listed(root: Path) -> Iterator[str]:
    names = _by_git(root)
    yield from files_without_git(root) if names is None else names


def _by_git(root: Path) -> list[str] | None:
    """Return the files that git lists, also in inner repositories; None: git can't list them."""
    try:
        said = subprocess.run(
            _LIST, cwd=root, capture_output=True, timeout=GIT_TIMEOUT_S, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    found: list[str] = []
    for raw in filter(None, said.split(b"\0")):
        name = os.fsdecode(raw).rstrip("/")
        if (root / name).is_dir() and not (root / name).is_symlink():  # another repository
            inner = _listed(root / name)
            found += [f"{name}/{each}" for each in inner]
        elif not _is_never(root, name):
            found.append(name)
    return found


def files_without_git(root: Path) -> Iterator[str]:
    """Yield the files below a folder, relative to it, unless a `.gitignore` file names them."""
    specs: dict[Path, GitIgnoreSpec] = {}
    for base, folders, files in os.walk(root):
        here = Path(base)
        _note_ignored(here, specs)
        folders[:] = [
            name for name in sorted(folders)
            if name not in _NEVER
            and not (here / name / _OF_A_VENV).exists()
            and not _is_ignored(here / name, f"{name}/", root, specs)
        ]  # fmt: skip
        links = [name for name in folders if (here / name).is_symlink()]
        for name in sorted([*files, *links]):
            if name not in _NEVER and not _is_ignored(here / name, name, root, specs):
                yield (here / name).relative_to(root).as_posix()


def _note_ignored(folder: Path, specs: "dict[Path, GitIgnoreSpec]") -> None:
    file = folder / ".gitignore"
    if file.is_file():
        from pathspec import GitIgnoreSpec

        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        specs[folder] = GitIgnoreSpec.from_lines(lines)


def _is_ignored(path: Path, name: str, root: Path, specs: "dict[Path, GitIgnoreSpec]") -> bool:
    """Return whether a path is ignored; the nearest `.gitignore` file that matches it decides."""
    for folder in path.parents:
        if (spec := specs.get(folder)) is not None:
            inner = (path.parent.relative_to(folder) / name).as_posix()
            said = spec.check_file(f"{inner}/" if name.endswith("/") else inner).include
            if said is not None:
                return said
        if folder == root:
            break
    return False


def _is_never(root: Path, name: str) -> bool:
    """Return whether a file is never sent: git's own files, compiled ones, and environments."""
    parts = PurePosixPath(name).parts
    if not _NEVER.isdisjoint(parts):
        return True
    parents = list(PurePosixPath(name).parents)[:-1]
    return any((root / parent / _OF_A_VENV).exists() for parent in parents)


def _named(root: Path, also: Sequence[str]) -> Iterator[str]:
    for text in also:
        path = Path(os.path.normpath(root / text))
        if not path.is_relative_to(root) or not path.exists():
            raise UsageError(
                f"--ship-also {text}: there is no such file or folder below {root}",
                "name one below the folder that travels",
            )
        for each in [path] if path.is_file() else sorted(path.rglob("*")):
            if not each.is_dir():
                yield each.relative_to(root).as_posix()


def _travelling(root: Path, name: str) -> int | None:
    """Return a file's size in bytes; None: it can't be sent; -1: it doesn't exist."""
    path = root / name
    try:
        name.encode()
        if not path.resolve().is_relative_to(root.resolve()):
            return None
        found = path.stat()
    except (UnicodeEncodeError, OSError, RuntimeError):
        return -1 if not path.is_symlink() and not path.exists() else None
    return found.st_size if stat.S_ISREG(found.st_mode) else None
