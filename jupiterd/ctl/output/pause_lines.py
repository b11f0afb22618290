"""The line about a paused cycle: who paused it, when, and the command to resume it.

Pure. Owns the text. Doesn't know how a cycle is paused.
"""

from collections.abc import Mapping
from typing import Any

from jupiterd.formats import plain
from jupiterd.ids import short

Cycle = Mapping[str, Any]


def pause_line(cycle: Cycle) -> str:
    """Return a line about a pause; empty if the cycle isn't paused."""
    paused: Mapping[str, Any] = cycle.get("paused") or {}
    if not paused:
        return ""
    at = f" at {plain(paused['at'])}" if paused.get("at") else ""
    go_on = f"jupiterctl cycle resume {short(str(cycle.get('id', '')))}"
    if waits(cycle):
        return f"{plain(paused.get('reason'))}{at}; go on with: {go_on}"
    return f"paused by {plain(paused.get('name'))}{at}; go on with: {go_on}"


def waits(cycle: Cycle) -> bool:
    """Return whether a cycle waits at the end of a phase for the user's answer."""
    return bool((cycle.get("paused") or {}).get("asks"))
