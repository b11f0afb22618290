"""How a round comes about in which an order holds that was given to a cycle. Pure.

Owns the words alone.
"""

from collections.abc import Mapping
from typing import Any

from jupiterd.ids import short


def next_round_lines(done: Mapping[str, Any]) -> list[str]:
    """Return which command starts such a round; nothing where the cycle goes on by itself.

    Args:
        done: what the daemon has answered to the order.
    """
    if not done.get("has_ended"):
        return []
    named = short(str(done["cycle"]))
    return [f"that cycle has ended; a round more: jupiterctl cycle extend {named} --rounds 1"]
