"""The result of an allreduce check over all ranks, as a table.

Pure. Owns the columns and the definition of healthy; doesn't measure anything.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jupiterd.formats import MISSING, plain, table

HEADERS = ("NODE", "RANK", "DEVICE", "ENGINE", "RESULT", "TIME", "BANDWIDTH", "NOTE")

FINE = frozenset({"ok", "left out"})

Row = Mapping[str, Any]


def is_healthy(rows: Sequence[Row]) -> bool:
    """Return whether every rank that took part has the right sum."""
    return all(row["result"] in FINE for row in rows)


def sync_lines(document: Mapping[str, Any]) -> list[str]:
    """Return a line about the engine that was checked, and the table."""
    head = f"{plain(document['engine'])}: {plain(document['reason'])}"
    return [head, "", *table(HEADERS, [_row(row) for row in document["nodes"]])]


def _row(row: Row) -> tuple[object, ...]:
    return (
        plain(row["name"]),
        MISSING if row["rank"] is None else row["rank"],
        plain(row["device"] or MISSING),
        plain(row["engine"]),
        row["result"],
        MISSING if row["time_ms"] is None else f"{row['time_ms']:.3g} ms",
        MISSING if row["mbit_per_s"] is None else f"{row['mbit_per_s']:,.0f} Mbit/s",
        plain(row["note"]),
    )
