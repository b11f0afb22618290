"""Files of this machine as documents: found in order, read within bounds.

Owns the walk through folders and how a file becomes a document. Doesn't know what belongs to a
source, or how it is named.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

from blake3 import blake3

from jupiterd.cycle.base.globs import WantedNames
from jupiterd.path_text import path_text
from jupiterd.workers.data.collectors.collector import CollectedDocument, Found, Unchanged, Visit
from jupiterd.workers.data.collectors.other_files import is_among_pages, is_no_document
from jupiterd.workers.data.collectors.tables import in_one_form
from jupiterd.workers.data.extract.decompression import unpacked_name, unpacked_within
from jupiterd.workers.data.extract.extraction import extractor_of
from jupiterd.workers.data.skips import SkipReason, UnreadableError
from jupiterd.workers.data.tables.file_forms import form_of
from jupiterd.workers.data.tables.file_rows import rows_in_file
from jupiterd.workers.data.tables.table_rows import TableRow, is_table, json_list, text_in

_LARGE_FILE_POINTER = b"version https://git-lfs.github.com/spec/"


MAX_AHEAD_BYTES = 64 << 20
"""Of files whose turn hasn't come yet."""


@dataclass(frozen=True)
class SourceFile:
    """One file of a source, not read yet."""

    cluster_id: str
    uri: str
    name: str
    """By whose ending its form is known."""
    read: Callable[[], bytes]
    """Returns its bytes; raises OSError or UnreadableError."""
    path: Path | None = None
    """Where it lies as a file, so that a table is read as a stream; None: nowhere."""


@dataclass(frozen=True)
class Bounds:
    """How much of a source is taken."""

    max_files: int
    max_bytes: int
    max_document_bytes: int
    """Unpacked, too."""
    field: str = "text"
    """What holds the text in a row of a table."""


def documents_of(
    files: Iterator[SourceFile], visit: Visit, bounds: Bounds, license_id: str, revision: str
) -> Iterator[Found]:
    """Yield a document for each file that can be read, within the bounds; record the others."""
    read_bytes, number = 0, 0
    wanted = visit.choose(_of_documents(files, visit))
    for number, file in enumerate(_begun_ahead(wanted, visit, bounds), 1):
        visit.progress(number, 0, "files")
        if number > bounds.max_files:
            visit.skips.add(file.uri, SkipReason.TOO_MANY)
            break
        if read_bytes >= bounds.max_bytes:
            visit.skips.add(file.uri, SkipReason.OVER_BUDGET, _size_of(file.path))
            continue
        if visit.purged.leaves_out(file.uri, visit.skips):
            continue
        before = visit.skips.seen_bytes
        yield from _documents(file, visit, bounds, _Stated(license_id, revision))
        read_bytes += visit.skips.seen_bytes - before
    visit.progress(number, number, "files")


def _of_documents(files: Iterable[SourceFile], visit: Visit) -> Iterator[SourceFile]:
    """Yield the files that may be documents; count the others, such as images, by themselves."""
    for file in files:
        path = file.path
        name = path_text(unpacked_name(file.name))
        has_pages = partial(is_among_pages, path, file.name) if path is not None else _nowhere
        if is_no_document(name, visit.language, has_pages):
            visit.skips.add_other(_size_of(path))
        else:
            yield file


def _nowhere() -> bool:
    return False


def _size_of(path: Path | None) -> int:
    try:
        return path.stat().st_size if path is not None else 0
    except OSError:
        return 0


def _begun_ahead(files: Iterable[SourceFile], visit: Visit, bounds: Bounds) -> Iterator[SourceFile]:
    """Yield the files in their order; text is being taken out of the next ones meanwhile."""
    most = visit.extraction.read_ahead
    if not most:
        yield from files
        return
    waiting: deque[tuple[SourceFile, int]] = deque()
    waiting_bytes = 0
    for file in islice(files, bounds.max_files + 1):
        waiting.append(_begun(file, visit, bounds))
        waiting_bytes += waiting[-1][1]
        while waiting and (len(waiting) > most or waiting_bytes > MAX_AHEAD_BYTES):
            ready, size = waiting.popleft()
            waiting_bytes -= size
            yield ready
    for ready, _ in waiting:
        yield ready


def _begun(file: SourceFile, visit: Visit, bounds: Bounds) -> tuple[SourceFile, int]:
    """Begin with a file; return it with its bytes read already, and how many they are."""
    name = path_text(unpacked_name(file.name))
    if is_table(name) or _may_be_list(file) or visit.purged.has(file.uri):
        return file, 0
    try:
        data = file.read()
        if not visit.previous.has(file.uri, blake3(data).hexdigest(), extractor_of(form_of(name))):
            whole = unpacked_within(data, file.name, bounds.max_document_bytes)
            visit.extraction.begin(form_of(name), whole, name)
    except (OSError, UnreadableError):
        return file, 0  # it is told of when its turn comes
    return replace(file, read=lambda: data), len(data)


@dataclass(frozen=True)
class _Stated:
    """What a source says of all its files."""

    license: str
    revision: str


def _documents(file: SourceFile, visit: Visit, bounds: Bounds, stated: _Stated) -> Iterator[Found]:
    """Yield what one file holds, or record why it can't be read."""
    try:
        if is_table(unpacked_name(file.name)):
            read = partial(_bytes_of, file)
            rows = rows_in_file(file.name, file.path, read, bounds, visit.language)
            yield from _of_rows(file, rows, visit, bounds, stated)
            return
        data = _bytes_of(file)
        listed = json_list(data, bounds.field, visit.language) if _may_be_list(file) else None
        if listed is not None:
            yield from _of_rows(file, iter(listed), visit, bounds, stated)
        else:
            yield _found(file, data, visit, bounds, stated)
            visit.skips.use(len(data))
    except UnreadableError as error:
        size = error.size_bytes or _size_of(file.path)
        visit.skips.add(file.uri, error.reason, size, error.detail)


def _may_be_list(file: SourceFile) -> bool:
    """Say whether it may be a list of rows, whose text no extraction is asked for."""
    return file.name.lower().endswith(".json")


def _of_rows(
    file: SourceFile, rows: Iterator[TableRow], visit: Visit, bounds: Bounds, stated: _Stated
) -> Iterator[Found]:
    for row in rows:
        uri = f"{file.uri}#{row.number}"
        try:
            text = text_in(row, bounds.field)
        except UnreadableError as error:
            visit.skips.add(uri, error.reason, error.size_bytes, error.detail)
            continue
        visit.skips.use(row.size_bytes)
        source_hash = blake3(text.encode()).hexdigest()
        if visit.previous.has(uri, source_hash, ""):
            yield Unchanged(uri)
        else:
            document = CollectedDocument(
                uri=uri, cluster_id=file.cluster_id, text=text, source_hash=source_hash,
                license=stated.license, revision=stated.revision, name="",
            )  # fmt: skip
            yield in_one_form(document, visit.language)


def _bytes_of(file: SourceFile) -> bytes:
    try:
        data = file.read()
    except FileNotFoundError as error:
        raise UnreadableError(SkipReason.VANISHED) from error
    except OSError as error:
        raise UnreadableError(SkipReason.UNREADABLE) from error
    if data.startswith(_LARGE_FILE_POINTER):
        raise UnreadableError(SkipReason.UNKNOWN_FORM, len(data))
    return data


def _found(file: SourceFile, data: bytes, visit: Visit, bounds: Bounds, stated: _Stated) -> Found:
    name = path_text(unpacked_name(file.name))
    form = form_of(name)
    source_hash = blake3(data).hexdigest()
    if visit.previous.has(file.uri, source_hash, extractor_of(form)):
        return Unchanged(file.uri)
    try:
        whole = unpacked_within(data, file.name, bounds.max_document_bytes)
        extracted = visit.extraction.read(form, whole, name=name)
    except UnreadableError as error:
        raise UnreadableError(error.reason, len(data), error.detail) from error
    if extracted.reason is not None:
        raise UnreadableError(extracted.reason, len(data))
    return CollectedDocument(
        uri=file.uri,
        cluster_id=file.cluster_id,
        text=extracted.text,
        source_hash=source_hash,
        license=stated.license,
        extractor=extracted.extractor,
        revision=stated.revision,
    )


def read_within(path: Path, max_bytes: int) -> bytes:
    """Return a file's bytes.

    Raises:
        UnreadableError: there are more of them; a file of any size is noticed without reading it.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > max_bytes:
            raise UnreadableError(SkipReason.TOO_LARGE, size)
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise UnreadableError(SkipReason.TOO_LARGE, len(data))
    return data


class Walk:
    """The files below a folder that are wanted, in the order of their names."""

    def __init__(
        self, root: Path, wanted: WantedNames, leave_out: Callable[[str, SkipReason], None]
    ) -> None:
        """Take the folder.

        Args:
            root: where the walk begins.
            wanted: names of files, relative to it.
            leave_out: told the names of links that lead out of it or nowhere, of pipes, sockets
                and devices, and of folders that can't be read.
        """
        self._root = root
        self._inside = Path(os.path.realpath(root))
        self._wanted = wanted
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
            elif self._wanted.has(name):
                yield name

    def _entries(self, below: str) -> list[str]:
        """Return what is in a folder; a folder's name has a slash, by which it is sorted too."""
        try:
            with os.scandir(self._root / below) as entries:
                found = [self._named(entry, below) for entry in entries if entry.name[0] != "."]
        except FileNotFoundError:  # it has vanished
            return []
        except OSError:
            self._leave_out(below or "./", SkipReason.UNREADABLE)
            return []
        return sorted(filter(None, found))

    def _named(self, entry: os.DirEntry[str], below: str) -> str:
        name = below + entry.name
        try:
            return self._wanted_name(entry, name)
        except OSError:
            self._leave_out(name, SkipReason.UNREADABLE)
            return ""

    def _wanted_name(self, entry: os.DirEntry[str], name: str) -> str:
        may_be_below = self._wanted.may_be_below(name)
        if not may_be_below and not self._wanted.has(name):
            return ""
        if entry.is_symlink() and not self._stays_inside(entry.path):
            self._leave_out(name, SkipReason.LEADS_OUT)
            return ""
        if entry.is_dir(follow_symlinks=False):
            return f"{name}/" if may_be_below else ""
        if entry.is_file():
            return name
        if not entry.is_dir():  # a link to a folder inside: what is there is met without it
            self._leave_out(name, SkipReason.NO_FILE)
        return ""

    def _stays_inside(self, link: str) -> bool:
        """Say whether a link leads to something below the root; one to itself leads nowhere."""
        target = Path(os.path.realpath(link))
        return target.is_relative_to(self._inside) and not target.is_symlink()
