"""Lines about the islands of a training run.

Pure. Owns the texts. The states come from the daemon's document.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jupiterd.formats import plain

Row = Mapping[str, Any]

SAID: Mapping[str, str] = {
    "in": "waits for the others",
    "starting": "begins",
    "away": "is away",
    "failed": "has failed",
    "done": "is done",
    "stopped": "is stopped",
    "waiting": "waits",
    "training": "trains",
}
"""State of an island -> its text."""


def island_lines(train: Row) -> list[str]:
    """Return a heading and a line for each island; empty if the run has no islands."""
    islands: Sequence[Row] = train.get("islands") or []
    if not islands:
        return []
    steps = train.get("outer_steps") or 0
    head = f"{len(islands)} islands, {steps} outer {'step' if steps == 1 else 'steps'} taken"
    every = train.get("inner_steps")
    return [f"{head}, one every {every} steps" if every else head, *map(_line, islands)]


def _line(row: Row) -> str:
    machines = len(row["nodes"])
    where = "one machine" if machines == 1 else f"{machines} machines"
    does = SAID.get(row["state"], plain(row["state"]))
    parts = [f"  island {row['island']} ({plain(row['engine'])}, {where}) {does}"]
    parts.append(f"step {row['step']:,}")
    if row.get("tokens_per_s"):
        parts.append(f"{row['tokens_per_s']:,.0f} tokens/s")
    return ", ".join(parts)
