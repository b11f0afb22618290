"""What a machine serves, in one line; jupiterctl and the dashboard say the same.

Pure. Owns the words. Doesn't know where the rows come from (`serving_document`).
"""

from collections.abc import Iterable, Mapping
from typing import Any

from jupiterd.formats import counted, plain, rate

Row = Mapping[str, Any]


def serving_words(rows: Iterable[Row]) -> str:
    """Return what a machine's models do, such as `promoted = python/2, 3 answers, 41 tokens/s`."""
    return "; ".join(map(_words, rows))


def _words(row: Row) -> str:
    name, meant = plain(row.get("model")), row.get("is")
    parts = [f"{name} = {plain(meant)}" if meant else name]
    if not row.get("ready"):
        parts.append("being loaded")
    parts.append(counted(int(row.get("answers") or 0), "answer"))
    if waiting := row.get("queued"):
        parts.append(f"{waiting} waiting")
    if speed := row.get("tokens_per_s"):
        parts.append(f"{rate(speed).removesuffix('/s')} tokens/s")
    return ", ".join(parts)
