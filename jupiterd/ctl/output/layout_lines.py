"""Lines about which machines would train together, shown before a run.

Pure. Owns the texts. Doesn't predict anything: the leader does.
"""

from collections.abc import Mapping
from typing import Any

from jupiterd.formats import plain

CHANGE_ROLES = "jupiterctl node role NODE generator takes one out of training"
ISLANDS_OFF = "islands are off"
"""The reason why a shown layout can't be chosen."""
WORTH = "worth: islands learn less from each token, so the best layout is the one worth most"

Row = Mapping[str, Any]


def layout_lines(answer: Mapping[str, Any], how: str = CHANGE_ROLES) -> list[str]:
    """Return the chosen layout with its reason, then the others; empty if the leader names none.

    Args:
        answer: the leader's answer to the command.
        how: the text about how to get a layout that isn't chosen automatically.
    """
    plan = answer.get("layouts")
    if not plan:
        return []
    chosen: Row = plan["chosen"]
    others = [row for row in plan["alternatives"] if row["title"] != plan["unasked"]]
    known = [row for row in others if row["tokens_per_s"] is not None]
    unknown = [plain(row["title"]) for row in others if row not in known]
    head = "Best layout" if chosen["tokens_per_s"] is not None else "Layout"
    lines = [f"{head}: {_line(chosen)}; {plain(chosen['why'])}"]
    if plan["unasked"] != chosen["title"]:
        lines.append(_running(plan, how))
    lines += [f"  instead: {_line(row)}" for row in known]
    if unknown:
        lines.append(f"  not compared, since it was never measured: {'; '.join(unknown)}")
    if more := plan.get("not_shown"):
        lines.append(f"  and {more} more that promise less or were never measured")
    if any(map(_worth, (chosen, *plan["alternatives"]))):
        lines.append(WORTH)
    if slow := plan.get("generators"):
        lines.append(f"too slow to train with the others, better at generating: {_all(slow)}")
    return lines


def _running(plan: Row, how: str) -> str:
    """Return a line about the layout that will run, which isn't the best one."""
    runs = plan["unasked"]
    row = next((row for row in plan["alternatives"] if row["title"] == runs), None)
    layout = plain(runs) if row is None else _line(row)
    is_requested = plan.get("is_asked")
    if is_requested:
        return f"what runs, as requested: {layout}"
    return f"what runs by itself: {layout}; {how}"


def _line(row: Row) -> str:
    parts = [f"{plain(row['title'])}, {_rate(row)}"]
    if row.get("inner_steps"):
        parts.append(f"exchanging every {row['inner_steps']} steps")
    return ", ".join(parts) + ("" if row.get("is_choosable", True) else f" ({ISLANDS_OFF})")


def _rate(row: Row) -> str:
    rate = row["tokens_per_s"]
    if rate is None:
        return f"speed N/A, never measured with this model: {_all(row.get('unmeasured') or [])}"
    return f"{rate:,.0f} tokens/s{_worth(row)}"


def _worth(row: Row) -> str:
    rate, useful = row["tokens_per_s"], row.get("useful_tokens_per_s")
    return f", worth {useful:,.0f}" if rate and useful and useful < rate else ""


def _all(names: list[str]) -> str:
    return ", ".join(map(plain, names))
