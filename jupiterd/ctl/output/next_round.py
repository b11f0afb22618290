"""The lines about a student that was promoted or rolled back, and from which round on. Pure.

Owns only the texts.
"""

from collections.abc import Mapping
from typing import Any

from jupiterd.formats import plain
from jupiterd.ids import short


def promoted_lines(done: Mapping[str, Any]) -> list[str]:
    """Return what a promotion by hand leads to.

    Args:
        done: the daemon's answer; one of an older version doesn't say whether its domain generates.
    """
    student = short(str(done["student"]))
    if not done.get("generates", True):
        return [f"student {student} is its cycle's promoted model; nothing is generated with it"]
    line = f"student {student} writes a tenth of round {done['from_round']}"
    return [line, *next_round_lines(done)]


def rolled_back_lines(done: Mapping[str, Any]) -> list[str]:
    """Return what rolling a student back leads to; `done` as for a promotion."""
    student = short(str(done["student"]))
    if not done.get("generates", True):
        now = f": promoted means {plain(done['promoted'])} now" if done.get("promoted") else ""
        return [f"student {student} is promoted no more{now}"]
    line = f"from round {done['from_round']} on student {student} is out of force"
    return [line, *next_round_lines(done)]


def next_round_lines(done: Mapping[str, Any]) -> list[str]:
    """Return the command that starts the next round; empty if the cycle goes on by itself.

    Args:
        done: the daemon's answer to the order.
    """
    if not done.get("has_ended"):
        return []
    named = short(str(done["cycle"]))
    return [f"that cycle has ended; a round more: jupiterctl cycle extend {named} --rounds 1"]
