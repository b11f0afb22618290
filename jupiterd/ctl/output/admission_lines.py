"""Lines about admission and join tokens of a status document.

Pure. Owns the texts; doesn't know where the document comes from.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jupiterd.formats import duration, plain, table
from jupiterd.ids import short

TOKEN_HEADERS = ("TOKEN", "FOR", "USED", "TIME LEFT")


def door_line(door: Mapping[str, Any]) -> str:
    """Return a line that says whether new machines are admitted, for how long, and why."""
    left_s = door.get("closes_in_s")
    lasting = "" if left_s is None else f" for another {duration(left_s)}"
    return f"{'open' if door.get('open') else 'closed'}{lasting}: {plain(door.get('reason'))}"


def token_table(tokens: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines of the table of valid tokens; empty if there is none."""
    return table(TOKEN_HEADERS, [_token(token) for token in tokens]) if tokens else []


def _token(token: Mapping[str, Any]) -> tuple[object, ...]:
    uses, left_s = token.get("uses"), token.get("expires_in_s")
    whom = {0: "any number of machines", 1: "1 machine"}.get(uses or 0, f"{uses} machines")
    used = {0: "never", 1: "once"}.get(token.get("used", 0), f"{token.get('used')} times")
    left = None if left_s is None else duration(left_s)
    return short(str(token.get("id", ""))), whom, used, left
