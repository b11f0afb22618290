"""Conversations in files of JSON lines on this machine's disk.

Owns which files are read, and that all rows have one form. Doesn't know tokens or templates. Other
files beside them, such as a README, are no documents.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import ClassVar, Self

from jupiterd.cycle.base.globs import WantedNames
from jupiterd.cycle.data.instruction_rows import (
    Conversation,
    MalformedRowError,
    RowForm,
    UnansweredRowError,
    conversation_of,
    refuse_mixture,
    row_form,
)
from jupiterd.cycle.holdout.clusters import path_of_file
from jupiterd.cycle.text_rules.secrets import cleaned
from jupiterd.errors import EmptySourceError
from jupiterd.path_text import path_text
from jupiterd.workers.data.collect.text_files import MAX_LINE_BYTES, PlacedText
from jupiterd.workers.data.collectors.files import Walk
from jupiterd.workers.data.collectors.table_files import size_of
from jupiterd.workers.data.extract.decompression import unpacked_name
from jupiterd.workers.data.skips import SkipCounts, SkipReason, UnreadableError
from jupiterd.workers.data.tables.file_rows import rows_in_file
from jupiterd.workers.data.tables.table_rows import JSON_LINES, TableRow, without_text


@dataclass(frozen=True)
class PlacedConversation(PlacedText):
    """A conversation; `text` is what is said in it, without a template."""

    conversation: Conversation
    may_be_cut: ClassVar[bool] = False

    def without_secrets(self) -> tuple[Self, Mapping[str, int]]:
        """Return it without secrets, and how many of each kind it has lost."""
        found = [cleaned(message.content) for message in self.conversation.messages]
        said = self.conversation.with_contents(tuple(text for text, _ in found))
        lost = sum((Counter(secrets) for _, secrets in found), Counter[str]())
        return replace(self, text=said.text, conversation=said), lost


@dataclass(frozen=True)
class _Limits:
    field: str = ""
    max_bytes: int = 1 << 62
    max_document_bytes: int = MAX_LINE_BYTES


def form_below(path: Path) -> RowForm:
    """Return what the first readable row of JSON below a path holds; text where there is none."""
    for name, file in _files(path):
        try:
            rows = rows_in_file(name, file, file.read_bytes, _Limits())
            if row := next((row for row in rows if row.reason is None), None):
                return row_form(row.fields) or RowForm.TEXT
        except UnreadableError:
            continue
    return RowForm.TEXT


def conversations(path: Path, form: RowForm, skips: SkipCounts) -> Iterator[PlacedConversation]:
    """Yield the conversation of each row; record rows that can't be used.

    Raises:
        UsageError: a row has another form than the first.
        EmptySourceError: no row can be used.
    """
    found = 0

    def leave_out(name: str, reason: SkipReason) -> None:
        skips.add(path_text(name), reason)

    for name, file in _files(path, leave_out, skips.add_other):
        try:
            for row in rows_in_file(name, file, file.read_bytes, _Limits()):
                if placed := _placed(name, row, form, skips):
                    found += 1
                    yield placed
        except UnreadableError as error:
            skips.add(name, error.reason, error.size_bytes, error.detail)
    if not found:
        why = next(iter(skips.details.values()), "no row can be read")
        raise EmptySourceError(f"{path_text(path)} has no conversation: {why}")


def _placed(
    name: str, row: TableRow, form: RowForm, skips: SkipCounts
) -> PlacedConversation | None:
    place = f"{name}#{row.number}"
    if row.reason is not None:
        skips.add(place, row.reason, row.size_bytes, row.detail)
        return None
    refuse_mixture(name, row.fields, row.number, form)
    try:
        said = conversation_of(row.fields, form)
    except (MalformedRowError, KeyError) as error:
        is_unanswered = isinstance(error, UnansweredRowError)
        reason = SkipReason.NO_ANSWER if is_unanswered else SkipReason.NO_FIELD
        skips.add(place, reason, row.size_bytes, f"line {row.number}: {_why(error, row)}")
        return None
    skips.use(row.size_bytes)
    return PlacedConversation(said.text, (*path_of_file(name), str(row.number)), said)


def _why(error: Exception, row: TableRow) -> str:
    """Return what is wrong with a row; of one without its field, what it has in its place."""
    return str(error) if isinstance(error, MalformedRowError) else without_text(row.fields)


def _files(
    path: Path,
    leave_out: Callable[[str, SkipReason], None] = lambda _name, _reason: None,
    other: Callable[[int], None] = lambda _size: None,
) -> list[tuple[str, Path]]:
    """Return the files of JSON lines, packed ones too, by their names below the path."""
    if path.is_file():
        return [(path_text(path.name), path)] if _is_json_lines(path.name) else []
    names = Walk(path, WantedNames("**/*"), leave_out).names() if path.is_dir() else ()
    found: list[tuple[str, Path]] = []
    for name in names:
        if _is_json_lines(name):
            found.append((path_text(name), path / name))
        else:
            other(size_of(path / name))
    return found


def _is_json_lines(name: str) -> bool:
    return PurePosixPath(unpacked_name(name).lower()).suffix in JSON_LINES
