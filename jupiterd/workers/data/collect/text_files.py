"""Text on this machine's disk as documents: files of every form that is read, and rows of tables.

Owns which files count, where a long one is cut, and what is told where there is no text. Doesn't
know tokens, or what is held out. Plain files and tables are read as streams, so that a dump of any
size is no trouble; the same readers as a domain's sources take the text out of the others.
"""

import codecs
import io
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, ClassVar, Self, cast

from jupiterd.cycle.base.globs import WantedNames
from jupiterd.cycle.data.instruction_rows import (
    CONVERSATIONS,
    RowForm,
    refuse_mixture,
    row_form,
)
from jupiterd.cycle.data.reason_words import reason_words
from jupiterd.cycle.data.row_advice import row_advice
from jupiterd.cycle.holdout.clusters import Path as ClusterPath
from jupiterd.cycle.holdout.clusters import path_of_file
from jupiterd.cycle.text_rules.secrets import cleaned
from jupiterd.cycle.text_rules.text_form import LineMeaning, text_form
from jupiterd.errors import EmptySourceError, UsageError
from jupiterd.path_text import path_text
from jupiterd.workers.data.collectors.collector import TextExtraction
from jupiterd.workers.data.collectors.files import Walk
from jupiterd.workers.data.collectors.other_files import is_among_pages, is_no_document
from jupiterd.workers.data.extract.byte_account import CountedStream, Shares
from jupiterd.workers.data.extract.decompression import UNPACKING_ERRORS, opened, unpacked_name
from jupiterd.workers.data.extract.encodings import decoded
from jupiterd.workers.data.extractors.man import is_page
from jupiterd.workers.data.skips import SkipCounts, SkipReason, UnreadableError
from jupiterd.workers.data.tables.file_forms import form_of
from jupiterd.workers.data.tables.file_rows import rows_in_file
from jupiterd.workers.data.tables.table_rows import TableRow, is_table, json_list, text_in

PIECE_BYTES = 1 << 20
"""A longer plain file becomes several documents, cut where a line ends."""

MAX_LINE_BYTES = 64 << 20
"""A longer line isn't one document of a table, whatever it is."""

MAX_PARSED_BYTES = 64 << 20
"""A larger file that has to be parsed as a whole is left out."""

GIVE_TEXT = "give it a folder or file with text, such as .txt, .md, .html, .pdf, .py or .jsonl"
WRITE_ROWS = 'write one object of JSON on each line, such as {"text": "..."}'
NAME_FIELD = "name the field with text: --field NAME"

_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True)
class PlacedText:
    """A text, and what it belongs to."""

    text: str
    path: ClusterPath
    """The folders, the file, and the row or the piece of it."""
    may_be_cut: ClassVar[bool] = True
    """Its end may be held out, and its beginning be trained on."""

    def without_secrets(self) -> tuple[Self, Mapping[str, int]]:
        """Return it without secrets, and how many of each kind it has lost."""
        text, lost = cleaned(self.text)
        return replace(self, text=text), lost


@dataclass(frozen=True)
class _RowLimits:
    field: str
    max_bytes: int = 1 << 62
    max_document_bytes: int = MAX_LINE_BYTES


class TextFiles:
    """The documents below a path."""

    def __init__(
        self, path: Path, field: str, extraction: TextExtraction, skips: SkipCounts | None = None
    ) -> None:
        """Take a folder or a file.

        Args:
            path: its place on this machine.
            field: what holds the text in a row of a table.
            extraction: takes text out of files.
            skips: told what is used and what is left out.
        """
        self._path = path
        self._shown_path = path_text(path)
        self._field = field
        self._limits = _RowLimits(field)
        self._extraction = extraction
        self.skips = skips or SkipCounts()
        self.skipped_rows = 0
        self._advice = ""
        """What to write instead of rows that lack the field."""

    def documents(self) -> Iterator[PlacedText]:
        """Yield every text that isn't blank, in an order that is the same each time.

        Raises:
            EmptySourceError: there is no such path, or no file below it that can be used.
        """
        files = self._files()
        found = 0
        for name, file in files:
            has_pages = partial(is_among_pages, file, name)
            if file != self._path and is_no_document(unpacked_name(name), "", has_pages):
                self.skips.add_other(_size_of(file))
                continue
            path = path_of_file(name)
            for number, text in enumerate(self._texts(name, file)):
                found += 1
                yield PlacedText(text, (*path, str(number)) if number else path)
        if not found:
            raise self._nothing_found(len(files))

    def _files(self) -> list[tuple[str, Path]]:
        if self._path.is_file():
            return [(path_text(self._path.name), self._path)]
        if not self._path.is_dir():
            raise EmptySourceError(f"there is no folder or file {self._shown_path}", GIVE_TEXT)
        if not os.access(self._path, os.R_OK | os.X_OK):
            raise UsageError(
                f"the folder {self._shown_path} can't be read", "check its permissions"
            )
        walk = Walk(self._path, WantedNames("**/*"), self._leave_out)
        files = [(path_text(name), self._path / name) for name in walk.names()]
        if not files and not self.skips.counts:
            is_empty = not any(self._path.iterdir())
            why = "is empty" if is_empty else "has only hidden files, which aren't read"
            raise EmptySourceError(f"the folder {self._shown_path} {why}", GIVE_TEXT)
        return files

    def _leave_out(self, name: str, reason: SkipReason) -> None:
        self.skips.add(path_text(name), reason)

    def _nothing_found(self, files: int) -> EmptySourceError:
        skips = self.skips
        if self.skipped_rows and set(skips.counts) <= {SkipReason.BROKEN, SkipReason.EMPTY}:
            why = skips.details.get(SkipReason.BROKEN, "all of them are empty")
            return EmptySourceError(f"{self._shown_path} has no text: {why}", WRITE_ROWS)
        if self.skipped_rows:
            detail = skips.details.get(SkipReason.NO_FIELD) or skips.details.get(SkipReason.BROKEN)
            why = f"no row of its tables has text in a field called {self._field}"
            more = "" if self._advice else f"; {detail or ''}"
            return EmptySourceError(
                f"{self._shown_path} has no text: {why}{more}", self._advice or NAME_FIELD
            )
        reasons = ", ".join(
            f"{reason_words(reason)} {number}, such as {skips.firsts[reason]}"
            for reason, number in skips.counts.most_common(3)
        )
        return EmptySourceError(
            f"{self._shown_path} has no text: none of its files ({files}) can be read: {reasons}",
            GIVE_TEXT,
        )

    def _texts(self, name: str, file: Path) -> Iterator[str]:
        """Yield the texts of one file; record what it lacks."""
        try:
            inner = unpacked_name(name)
            if is_table(inner):
                rows = rows_in_file(name, file, file.read_bytes, self._limits)
                yield from self._of_rows(name, rows)
            elif inner.lower().endswith(".json"):
                yield from self._of_json(name, file)
            elif (form := _form(inner, file)) == "text":
                with opened(file) as stream:
                    yield from self._of_text(name, stream)
            else:
                data = _whole(file)
                yield self._extracted(form, data, name, len(data))
        except UnreadableError as error:
            self.skips.add(name, error.reason, error.size_bytes or _size_of(file), error.detail)
        except UNPACKING_ERRORS:
            self.skips.add(name, SkipReason.BROKEN, _size_of(file))
        except OSError:
            self.skips.add(name, SkipReason.UNREADABLE, _size_of(file))

    def _extracted(self, form: str, data: bytes, name: str, size_bytes: int) -> str:
        found = self._extraction.read(form, data, name=unpacked_name(name))
        if found.reason is not None:
            raise UnreadableError(found.reason)
        self.skips.use(size_bytes)
        return found.text

    def _of_json(self, name: str, file: Path) -> Iterator[str]:
        data = _whole(file)
        rows = json_list(data, self._field)
        if rows is None:
            yield from self._of_text(name, io.BytesIO(data))
        else:
            yield from self._of_rows(name, iter(rows))

    def _of_text(self, name: str, stream: IO[bytes]) -> Iterator[str]:
        counted = CountedStream(stream)
        shares, number, is_used = Shares(lambda: counted.bytes), -1, False
        try:
            for number, piece in enumerate(_pieces(cast("IO[bytes]", counted))):
                size = shares.of(len(piece))
                try:
                    text = self._extracted("text", piece, name, size)
                except UnreadableError as error:
                    is_used = False
                    place = f"{name}#{number}" if number else name
                    self.skips.add(place, error.reason, size)
                else:
                    is_used = True
                    yield text
        except UnreadableError as error:  # of what can't be cut into pieces
            raise UnreadableError(error.reason, shares.rest(), error.detail) from error
        if number < 0:
            self.skips.add(name, SkipReason.EMPTY)
        (self.skips.use if is_used else self.skips.lose)(shares.rest())

    def _of_rows(self, name: str, rows: Iterator[TableRow]) -> Iterator[str]:
        for row in rows:
            try:
                text = text_in(row, self._field)
            except UnreadableError as error:
                self._refuse_conversation(name, row)
                self.skipped_rows += 1
                self._advice = self._advice or row_advice(row.fields)
                self.skips.add(f"{name}#{row.number}", error.reason, error.size_bytes, error.detail)
                continue
            self.skips.use(row.size_bytes)
            yield text_form(text, LineMeaning.PARAGRAPHS)

    def _refuse_conversation(self, name: str, row: TableRow) -> None:
        if self._field == RowForm.TEXT and row_form(row.fields) in CONVERSATIONS:
            refuse_mixture(name, row.fields, row.number, RowForm.TEXT)


def _size_of(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _form(name: str, file: Path) -> str:
    """Return how a file is read; a log that only ends like a page of a manual is plain text."""
    form = form_of(name)
    if form != "man":
        return form
    with opened(file) as stream:
        return form if is_page(stream.read(PIECE_BYTES)) else "text"


def _whole(file: Path) -> bytes:
    with opened(file) as stream:
        data = stream.read(MAX_PARSED_BYTES + 1)
    if len(data) > MAX_PARSED_BYTES:
        raise UnreadableError(SkipReason.TOO_LARGE)
    return data


def _pieces(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield a file's bytes in pieces that end where a line or a character does."""
    rest = b""
    while data := stream.read(PIECE_BYTES - len(rest)):
        data = rest + data
        if data.startswith(_WIDE_MARKS):  # its line ends are wider than a byte
            stream, data = io.BytesIO(decoded(data + stream.read()).encode()), b""
        end = data.rfind(b"\n") + 1 or len(data)
        if len(data) < PIECE_BYTES:  # the file ends here
            end = len(data)
        elif end == len(data) and not data.endswith(b"\n"):
            end = _end_of_character(data)
        rest = data[end:]
        if end:
            yield data[:end]
    if rest:
        yield rest


def _end_of_character(data: bytes) -> int:
    """Return where the last whole character of UTF-8 ends."""
    end = len(data)
    while end > 0 and end > len(data) - 4 and data[end - 1] & 0xC0 == 0x80:
        end -= 1
    return end - 1 if end and data[end - 1] >= 0xC0 else len(data)
