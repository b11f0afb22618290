"""A paused cycle in words: who paused it and when, and what goes on with it.

Pure. Owns the words. Doesn't know how a cycle is paused.
"""

from collections.abc import Mapping
from typing import Any

from jupiterd.formats import plain
from jupiterd.ids import short

Cycle = Mapping[str, Any]


def pause_line(cycle: Cycle) -> str:
    """Return what is to be known of a pause, in one line; empty where the cycle isn't paused."""
    paused: Mapping[str, Any] = cycle.get("paused") or {}
    if not paused:
        return ""
    at = f" at {plain(paused['at'])}" if paused.get("at") else ""
    go_on = f"jupiterctl cycle resume {short(str(cycle.get('id', '')))}"
    if waits(cycle):
        return f"{plain(paused.get('reason'))}{at}; go on with: {go_on}"
    return f"paused by {plain(paused.get('name'))}{at}; go on with: {go_on}"


def waits(cycle: Cycle) -> bool:
    """Return whether a cycle waits at the end of a phase for somebody's answer."""
    return bool((cycle.get("paused") or {}).get("asks"))
