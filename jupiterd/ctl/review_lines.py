"""What a phase has made as people look at it before they let a cycle go on.

Pure. Owns the words. What samples say is somebody else's text: nothing of it steers the terminal.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jupiterd.ctl.phase_lines import dropped_line
from jupiterd.formats import plain, printable
from jupiterd.ids import short

SHOWN_CHARACTERS = 160
ALL_REASONS = 100

Review = Mapping[str, Any]
Row = Mapping[str, Any]


def review_lines(review: Review) -> list[str]:
    """Return what came in, what went out, what was dropped and why, and a few samples of both."""
    head = f"round {review['round']} {plain(review.get('phase'))}"
    counts = [f"{name} {review[name]:,}" for name in ("in", "out") if review.get(name) is not None]
    lines = [f"{head}  {', '.join(counts)}"] if counts else [head]
    if review.get("detail"):
        lines.append(f"  {plain(review['detail'])}")
    if dropped := dropped_line(review.get("dropped") or {}, ALL_REASONS):
        lines.append(f"  dropped {printable(dropped)}")
    lines += _samples("kept", review.get("kept_samples") or [])
    return lines + _samples("dropped", review.get("dropped_samples") or [])


def _samples(what: str, rows: Sequence[Row]) -> list[str]:
    return [f"{what}, {len(rows)} of them:", *map(_sample, rows)] if rows else []


def _sample(row: Row) -> str:
    why = f"{plain(row['reason'])}, " if row.get("reason") else ""
    text = printable(" ".join(str(row.get("text", "")).split())[:SHOWN_CHARACTERS])
    return f"  {short(str(row.get('id', '')))} ({why}{plain(row.get('source_uri'))}): {text}"
