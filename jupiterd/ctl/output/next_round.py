"""The line about the next round of a cycle, in which an order takes effect. Pure.

Owns only the text.
"""

from collections.abc import Mapping
from typing import Any

from jupiterd.ids import short


def next_round_lines(done: Mapping[str, Any]) -> list[str]:
    """Return the command that starts the next round; empty if the cycle goes on by itself.

    Args:
        done: the daemon's answer to the order.
    """
    if not done.get("has_ended"):
        return []
    named = short(str(done["cycle"]))
    return [f"that cycle has ended; a round more: jupiterctl cycle extend {named} --rounds 1"]
