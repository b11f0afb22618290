"""Records of CSV: cells by the names of the header, and what in a record can't be right.

Owns how text is cut into them. A record with more cells than the header names has lost part of its
text to a delimiter that nobody quoted: it is wrong, and so is one whose quote is never closed.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

MAX_FIELD_BYTES: Final = 256 << 20

_DELIMITERS: Final = ",;\t|"
_NONE: Final = "\x1f"
"""Stands in no text: a header of one name has no delimiter."""
_SNIFFED_CHARS: Final = 8192


@dataclass(frozen=True)
class CsvRecord:
    """One record, or what is wrong with it."""

    number: int
    """From 1; the header has none."""
    size_bytes: int
    """In UTF-8, with its delimiters and line ends, and with blank lines before it."""
    cells: Mapping[str, str]
    fault: str = ""


def records(text: str) -> Iterator[CsvRecord]:
    """Yield the records behind the header."""
    csv.field_size_limit(MAX_FIELD_BYTES)
    lines = _Lines(text)
    reader = csv.reader(lines, delimiter=delimiter_of(text))
    number = 0
    try:
        header = _names(next((cells for cells in reader if cells), []))
        for number, cells in enumerate(reader, 1):
            if not cells:
                continue
            is_open = lines.ends_in_a_quote
            size = lines.taken()
            if fault := _open(number) if is_open else _too_many(number, cells, header):
                yield CsvRecord(number, size, {}, fault)
            else:
                yield CsvRecord(number, size, dict(zip(header, cells, strict=False)))
    except csv.Error as error:
        yield CsvRecord(number + 1, lines.taken(), {}, f"row {number + 1}: {error}")


def delimiter_of(text: str) -> str:
    """Return what stands between cells: one of those in the header's line."""
    header = next((line for line in io.StringIO(text) if line.strip()), "")
    found = [each for each in _DELIMITERS if each in header]
    if len(found) < 2:
        return found[0] if found else _NONE
    try:
        return csv.Sniffer().sniff(text[:_SNIFFED_CHARS], "".join(found)).delimiter
    except csv.Error:
        return max(found, key=header.count)


def _names(header: Sequence[str]) -> list[str]:
    """Return the names of columns; of several of one name the first alone has it."""
    often = Counter[str]()
    names: list[str] = []
    for name in header:
        often[name] += 1
        names.append(name if often[name] == 1 else f"{name} ({often[name]})")
    return names


def _open(number: int) -> str:
    return f"row {number} begins with a quote that is never closed"


def _too_many(number: int, cells: Sequence[str], header: Sequence[str]) -> str:
    """Say that a record has more cells than the header; empty ones are only delimiters."""
    if not any(cell.strip() for cell in cells[len(header) :]):
        return ""
    return (
        f"row {number} has {len(cells)} cells, and the header names {len(header)}: "
        "a text that holds the delimiter needs quotes"
    )


class _Lines:
    """The lines of a text, and how much of it the reader has taken since it was asked last."""

    def __init__(self, text: str) -> None:
        self._lines = iter(io.StringIO(text, newline=""))
        self._taken: list[str] = []
        self._is_over = False

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines, None)
        if line is None:
            self._is_over = True  # the reader asks in vain for the rest of a record, or for another
            raise StopIteration
        self._taken.append(line)
        return line

    @property
    def ends_in_a_quote(self) -> bool:
        """Say whether the text ends in the midst of the record that was taken."""
        return self._is_over and sum(not line.isspace() for line in self._taken) > 1

    def taken(self) -> int:
        """Return how many bytes were taken."""
        size = sum(len(line.encode("utf-8", "surrogatepass")) for line in self._taken)
        self._taken.clear()
        return size
