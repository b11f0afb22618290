"""Text on this machine's disk as documents: plain files, and tables of JSON with one on each line.

Owns which files count and where a long one is cut. Doesn't know tokens, or what is held out. Files
are read as streams, so that a dump of any size is no trouble.
"""

import gzip
import io
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import zstandard

from jupiterd.errors import EmptySourceError, UsageError

PIECE_BYTES = 1 << 20
"""A longer plain file becomes several documents, cut where a line ends."""

MAX_LINE_BYTES = 64 << 20
"""A longer line isn't one document of a table, whatever it is."""

TABLES = (".jsonl", ".ndjson")
PACKED = (".gz", ".zst")

GIVE_TEXT = "give it a folder or file with text in UTF-8, such as .txt, .md, .py or .jsonl"


@dataclass
class Skipped:
    """What couldn't be used, counted while documents are read."""

    files: int = 0
    lines: int = 0


class TextFiles:
    """The documents below a path."""

    def __init__(self, path: Path, field: str) -> None:
        """Take a folder or a file; `field` holds the text in a line of a table."""
        self._path = path
        self._field = field
        self.skipped = Skipped()

    def documents(self) -> Iterator[str]:
        """Yield every text that isn't blank, in an order that is the same each time.

        Raises:
            EmptySourceError: there is no such path, or no file below it that can be used.
        """
        files = self._files()
        found = 0
        for file in files:
            for text in self._texts(file):
                found += 1
                yield text
        if not found:
            raise EmptySourceError(f"{self._path} has no text: {self._why_none(files)}", GIVE_TEXT)

    def _files(self) -> list[Path]:
        if self._path.is_file():
            return [self._path]
        if not self._path.is_dir():
            raise EmptySourceError(f"there is no folder or file {self._path}", GIVE_TEXT)
        if not os.access(self._path, os.R_OK | os.X_OK):
            raise UsageError(f"the folder {self._path} can't be read", "check its permissions")
        inside = self._path.resolve()
        found = sorted(
            (path.relative_to(self._path).as_posix(), path)
            for path in self._path.rglob("*")
            if path.is_file() and path.resolve().is_relative_to(inside)
        )
        files = [
            path
            for name, path in found
            if not any(part.startswith(".") for part in Path(name).parts)
        ]
        if not files:
            raise EmptySourceError(f"the folder {self._path} is empty", GIVE_TEXT)
        return files

    def _why_none(self, files: list[Path]) -> str:
        if self.skipped.lines:
            return f"no line of its tables has text in a field called {self._field}"
        if len(files) == 1 and not os.access(files[0], os.R_OK):
            return "it can't be read"
        return f"none of its files ({len(files)}) can be read as UTF-8 text"

    def _texts(self, file: Path) -> Iterator[str]:
        reader = self._rows if _is_table(file) else _pieces
        try:
            with _opened(file) as stream:
                yield from reader(stream)
        except (OSError, EOFError, UnicodeDecodeError, _NoTextError, zstandard.ZstdError):
            self.skipped.files += 1

    def _rows(self, stream: IO[bytes]) -> Iterator[str]:
        while line := stream.readline(MAX_LINE_BYTES):
            if not line.strip():
                continue
            text = self._text_in(line)
            if text:
                yield text
            else:
                self.skipped.lines += 1

    def _text_in(self, line: bytes) -> str:
        try:
            row: Any = json.loads(line)
            text = row[self._field]
        except (ValueError, KeyError, TypeError, RecursionError):
            return ""
        return text if isinstance(text, str) and _is_text(text) else ""


class _NoTextError(Exception):
    """A file's bytes aren't text."""


def _pieces(stream: IO[bytes]) -> Iterator[str]:
    rest = b""
    while data := stream.read(PIECE_BYTES - len(rest)):
        data = rest + data
        end = data.rfind(b"\n") + 1 or len(data)
        if len(data) < PIECE_BYTES:  # the file ends here
            end = len(data)
        elif end == len(data) and not data.endswith(b"\n"):
            end = _end_of_character(data)
        rest = data[end:]
        text = data[:end].decode("utf-8-sig")
        if "\0" in text:
            raise _NoTextError
        if _is_text(text):
            yield text
    if rest:
        yield rest.decode()


def _end_of_character(data: bytes) -> int:
    """Return where the last whole character of UTF-8 ends."""
    end = len(data)
    while end > 0 and end > len(data) - 4 and data[end - 1] & 0xC0 == 0x80:
        end -= 1
    return end - 1 if end and data[end - 1] >= 0xC0 else len(data)


def _is_text(text: str) -> bool:
    return bool(text.strip()) and "\0" not in text


def _is_table(file: Path) -> bool:
    suffixes = file.suffixes
    if suffixes and suffixes[-1] in PACKED:
        suffixes = suffixes[:-1]
    return bool(suffixes) and suffixes[-1] in TABLES


def _opened(file: Path) -> IO[bytes]:
    if file.suffix == ".gz":
        return io.BufferedReader(gzip.open(file))
    if file.suffix == ".zst":
        return io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(file.open("rb")))
    return file.open("rb")
