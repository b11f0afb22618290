"""Texts of a Hugging Face data set as documents, streamed through a process of its own.

Owns what reading it may cost, and which of its rows count. Doesn't know the library
(`hugging_face`), tokens, or what is held out.
"""

from collections.abc import Iterator

from jupiterd.cycle.runs.run_settings import DataSettings
from jupiterd.errors import EmptySourceError, SourceUnreachableError
from jupiterd.workers.data.collect.text_files import MAX_LINE_BYTES
from jupiterd.workers.data.skips import SkipCounts, SkipReason
from jupiterd.workers.data.tables.isolated_tables import TableLimits, rows_apart

LIMITS = TableLimits(max_chars=MAX_LINE_BYTES, max_chars_in_all=1 << 62)
"""Those of a collection, but for the size: who asks for a data set says how much of it."""


def documents(settings: DataSettings, skips: SkipCounts) -> Iterator[str]:
    """Yield every text that isn't blank; record rows, and files, that can't be read to their end.

    Raises:
        MissingExtraError: the library isn't installed.
        SourceUnreachableError: there is no way to it just now.
        UsageError: the subset, the split or the field isn't there.
        EmptySourceError: there is no such data set, or no row has any text.
    """
    found = 0
    for number, row in enumerate(_rows(settings), 1):
        if row is SkipReason.TIMED_OUT:
            raise SourceUnreachableError(f"{settings.path} sends nothing any more")
        if isinstance(row, SkipReason):
            skips.add(f"{settings.path}#{number}", row)
        elif row.strip():
            found += 1
            skips.use(len(row))
            yield row
        else:
            skips.add(f"{settings.path}#{number}", SkipReason.EMPTY)
    if not found:
        raise EmptySourceError(
            f"{settings.path} has no text in its field {settings.field}",
            "name the field with text: jupiterctl data prepare DATASET --field NAME",
        )


def _rows(settings: DataSettings) -> Iterator[str | SkipReason]:
    order = {
        "path": settings.path, "subset": settings.subset, "split": settings.split, "revision": "",
        "required": settings.field,
    }  # fmt: skip
    for row in rows_apart("hugging_face", order, (settings.field,), LIMITS):
        yield row if isinstance(row, SkipReason) else row[settings.field]
