"""The process that reads tables which libraries open: what strangers packed may fill its memory.

Owns the limit that it lives under, and how much of a table and of a row is sent. `isolated_tables`
starts it by `python -m jupiterd.workers.data.tables.table_process BYTES`; its standard input is a
socket: an order comes in, rows go out, each message as in `extraction_process`.
"""

import ctypes
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import msgpack

from jupiterd.errors import JupiterError
from jupiterd.workers.data.extract.extraction_process import limit, receive, send
from jupiterd.workers.data.skips import SkipReason
from jupiterd.workers.data.tables import hugging_face, parquet_file
from jupiterd.workers.data.tables.parquet_file import COLUMNS

Row = Mapping[str, Any]

MAX_ROWS, MAX_CHARS = 64, 1 << 20
"""Of one message; a longer row goes alone."""

MAX_FIELD_CHARS = 2048
"""Of what isn't the text: an address, a licence."""

WITHOUT_TORCH = {"USE_TORCH": "0"}
"""Or datasets imports torch wherever that is installed: twice the time until the first row, and
memory that counts against the limit. Nobody makes tensors of rows here."""

_PR_SET_PDEATHSIG = 1


def _of_parquet(order: Mapping[str, Any]) -> Iterator[Row | SkipReason]:
    return parquet_file.rows(Path(order["path"]), order["fields"])


def _of_hugging_face(order: Mapping[str, Any]) -> Iterator[Row | SkipReason]:
    os.environ |= WITHOUT_TORCH
    part: list[int] = order.get("part", [])
    return hugging_face.rows(
        order["path"],
        order["subset"],
        order["split"],
        order["revision"],
        order["required"],
        (part[0], part[1]) if part else None,
    )


_KINDS: Mapping[str, Callable[[Mapping[str, Any]], Iterator[Row | SkipReason]]] = {
    "parquet": _of_parquet,
    "hugging_face": _of_hugging_face,
}


def main(memory_bytes: int) -> None:
    """Answer one order."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    limit(resource.RLIMIT_CORE, 0)
    limit(resource.RLIMIT_DATA, memory_bytes)
    link = socket.socket(fileno=0)
    if (body := receive(link)) is None:
        return
    try:
        for rows in batches_of_rows(cast("dict[str, Any]", msgpack.unpackb(body))):
            send(link, {"rows": rows})
        send(link, {"rows": []})
    except JupiterError as error:
        send(link, {"error": [error.code, error.message, error.hint]})


def batches_of_rows(order: Mapping[str, Any]) -> Iterator[list[Row | str]]:
    """Yield rows, some at a time; in the place of one that can't be had stands the reason.

    Raises:
        JupiterError: there is no such table, or no way to it.
    """
    rows: list[Row | str] = []
    chars = 0
    for row in _cut(_within(_KINDS[order["kind"]](order), order), order):
        size = 0 if isinstance(row, str) else sum(map(len, row.values()))
        if rows and (len(rows) >= MAX_ROWS or chars + size > MAX_CHARS):
            yield rows
            rows, chars = [], 0
        rows.append(row)
        chars += size
    yield from [rows] if rows else []


def _within(
    rows: Iterator[Row | SkipReason], order: Mapping[str, Any]
) -> Iterator[Row | SkipReason]:
    """Yield rows until the texts are too much together, those that are too long each included."""
    left_chars: int = order["most_in_all"]
    for row in rows:
        text = "" if isinstance(row, SkipReason) else row.get(order["fields"][0])
        left_chars -= len(text) if isinstance(text, str) else 0
        if left_chars < 0:
            yield SkipReason.OVER_BUDGET
            return
        yield row


def _cut(rows: Iterator[Row | SkipReason], order: Mapping[str, Any]) -> Iterator[Row | str]:
    """Yield of each row the fields that are text; why not, where the first of them is too long."""
    text_field, *others = order["fields"]
    for row in rows:
        if isinstance(row, SkipReason):
            yield str(row)
            continue
        named = (*others, COLUMNS)
        found = {name: row[name][:MAX_FIELD_CHARS] for name in named if _is_text(row, name)}
        if not _is_text(row, text_field):
            yield found
            continue
        text = row[text_field]
        yield (
            str(SkipReason.TOO_LARGE) if len(text) > order["most"] else {**found, text_field: text}
        )


def _is_text(row: Row, name: str) -> bool:
    return isinstance(row.get(name), str)


if __name__ == "__main__":
    main(int(sys.argv[1]))
