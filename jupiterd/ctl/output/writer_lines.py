"""Lines about the models that write a cycle's synthetic text.

Pure. Owns the texts. Doesn't know how a model is promoted or rolled back.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jupiterd.formats import plain

SHOWN = 3
"""How many promotions and rollbacks are shown: the last ones."""


def writer_lines(cycle: Mapping[str, Any]) -> list[str]:
    """Return the share that our own students write, who writes what, and the promotions."""
    lines: list[str] = []
    if (share := cycle.get("self_hosting")) is not None:
        lines.append(f"self-hosting {share:.0%} of the text of round {cycle['self_hosting_round']}")
    lines += [_line(each) for each in _by_writer(cycle.get("writers", []))]
    return [*lines, *(plain(each) for each in cycle.get("promotions", [])[-SHOWN:])]


def _by_writer(rows: Sequence[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], list[str]]]:
    """Return each writer with its templates; empty if no student writes."""
    if not any(row["is_own"] for row in rows):
        return []
    found: dict[tuple[str, float], tuple[Mapping[str, Any], list[str]]] = {}
    for row in rows:
        found.setdefault((row["generator"], row["share"]), (row, []))[1].append(row["template"])
    return list(found.values())


def _line(written: tuple[Mapping[str, Any], list[str]]) -> str:
    row, templates = written
    who = f"student {plain(row['name'])}" if row["is_own"] else plain(row["name"])
    canary = " (canary)" if row["is_canary"] else ""
    return f"  {who} writes {row['share']:.0%} of {plain(', '.join(templates))}{canary}"
