"""Files of this machine as documents: found in order, read within bounds.

Owns the walk through folders and how a file becomes a document. Doesn't know what belongs to a
source, or how it is named.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from blake3 import blake3

from jupiterd.cycle.base.globs import glob_pattern
from jupiterd.workers.data.collectors.collector import Document, Found, Unchanged, Visit
from jupiterd.workers.data.extraction import extractor_of
from jupiterd.workers.data.skips import SkipReason, UnreadableError

_FORMS = {".html": "html", ".htm": "html", ".xhtml": "html", ".pdf": "pdf"}

_LARGE_FILE_POINTER = b"version https://git-lfs.github.com/spec/"


@dataclass(frozen=True)
class SourceFile:
    """One file of a source, not read yet."""

    cluster_id: str
    uri: str
    name: str
    """By whose ending its form is known."""
    read: Callable[[], bytes]
    """Returns its bytes; raises OSError or UnreadableError."""


@dataclass(frozen=True)
class Bounds:
    """How much of a source is taken."""

    max_files: int
    max_bytes: int


def form_of(name: str) -> str:
    """Return how a file of this name is read."""
    return _FORMS.get(PurePosixPath(name.lower()).suffix, "text")


def documents_of(
    files: Iterator[SourceFile], visit: Visit, bounds: Bounds, license_id: str, revision: str
) -> Iterator[Found]:
    """Yield a document for each file that can be read, within the bounds; record the others."""
    read_bytes, number = 0, 0
    for number, file in enumerate(visit.choose(files), 1):
        visit.progress(number, 0, "files")
        if number > bounds.max_files:
            visit.skips.add(file.uri, SkipReason.TOO_MANY)
            break
        if read_bytes >= bounds.max_bytes:
            visit.skips.add(file.uri, SkipReason.OVER_BUDGET)
            continue
        if visit.purged.leaves_out(file.uri, visit.skips):
            continue
        try:
            data = _bytes_of(file)
            read_bytes += len(data)
            yield _found(file, data, visit, license_id, revision)
        except UnreadableError as error:
            visit.skips.add(file.uri, error.reason)
    visit.progress(number, number, "files")


def _bytes_of(file: SourceFile) -> bytes:
    try:
        data = file.read()
    except FileNotFoundError as error:
        raise UnreadableError(SkipReason.VANISHED) from error
    except OSError as error:
        raise UnreadableError(SkipReason.UNREADABLE) from error
    if data.startswith(_LARGE_FILE_POINTER):
        raise UnreadableError(SkipReason.UNKNOWN_FORM)
    return data


def _found(file: SourceFile, data: bytes, visit: Visit, license_id: str, revision: str) -> Found:
    form = form_of(file.name)
    source_hash = blake3(data).hexdigest()
    if visit.previous.has(file.uri, source_hash, extractor_of(form)):
        return Unchanged(file.uri)
    extracted = visit.extraction.read(form, data, name=printable(file.name))
    if extracted.reason is not None:
        raise UnreadableError(extracted.reason)
    return Document(
        uri=file.uri,
        cluster_id=file.cluster_id,
        text=extracted.text,
        source_hash=source_hash,
        license=license_id,
        extractor=extracted.extractor,
        revision=revision,
    )


def read_within(path: Path, max_bytes: int) -> bytes:
    """Return a file's bytes.

    Raises:
        UnreadableError: there are more of them; a file of any size is noticed without reading it.
    """
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size > max_bytes:
            raise UnreadableError(SkipReason.TOO_LARGE)
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise UnreadableError(SkipReason.TOO_LARGE)
    return data


class Walk:
    """The files below a folder that a glob matches, in the order of their names."""

    def __init__(self, root: Path, glob: str, leave_out: Callable[[str], None]) -> None:
        """Take the folder.

        Args:
            root: where the walk begins.
            glob: which files are wanted, relative to it; ** stands for any folders.
            leave_out: told the names of links that lead out of it.
        """
        self._root = root
        self._inside = root.resolve()
        self._wanted = glob_pattern(glob)
        self._leave_out = leave_out

    def names(self) -> Iterator[str]:
        """Yield the names of files, relative to the root; hidden ones aren't there at all.

        They come in the order of whole names as texts. Folders lie on a stack of our own, for one
        may be deeper than Python's.
        """
        stack = [iter(self._entries(""))]
        while stack:
            name = next(stack[-1], "")
            if not name:
                stack.pop()
            elif name.endswith("/"):
                stack.append(iter(self._entries(name)))
            elif self._wanted.fullmatch(name):
                yield name

    def _entries(self, below: str) -> list[str]:
        """Return what is in a folder; a folder's name has a slash, by which it is sorted too."""
        try:
            with os.scandir(self._root / below) as entries:
                found = [self._named(entry, below) for entry in entries if entry.name[0] != "."]
        except OSError:  # it has vanished, or may not be read
            return []
        return sorted(filter(None, found))

    def _named(self, entry: os.DirEntry[str], below: str) -> str:
        name = below + entry.name
        if entry.is_symlink() and not Path(entry.path).resolve().is_relative_to(self._inside):
            self._leave_out(name)
            return ""
        if entry.is_dir(follow_symlinks=False):
            return f"{name}/"
        return name if entry.is_file() else ""


def printable(name: str) -> str:
    """Return a file's name as text: what isn't UTF-8 in it is written out."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
