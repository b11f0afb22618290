"""Bits per byte of each round's candidate and incumbent, and the threshold for promotion.

Pure. Owns the picture: fewer bits are better and stand further left. Doesn't know how a gate
decides; its rule is that the improvement, less what chance may do to it, exceeds the margin.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from jupiter_tui.drawings.primitives.lines import Cell, Line, Lines, Tone, fitted, line
from jupiter_tui.drawings.primitives.thresholds import VERDICT_TONES
from jupiter_tui.model.scene import Scene
from jupiterd.formats import plain

SHOWN = 6
HEAD_WIDTH = 20
MIN_SCALE = 16
CANDIDATE, WHISKER, THRESHOLD, INCUMBENT = "●", "─", "┊", "│"
LEGEND = (
    f"{CANDIDATE}{WHISKER} candidate, and the most that it may have",
    f"{THRESHOLD} promoted if all of it is left of here   {INCUMBENT} incumbent",
)

Verdict = Mapping[str, Any]


class Scored(NamedTuple):
    """A round's figures, in bits per byte."""

    candidate: float
    worst: float | None
    """Upper confidence bound of the candidate's bits per byte."""
    threshold: float | None
    """The candidate is promoted if `worst` is below it."""
    incumbent: float


def bits(scene: Scene, width: int, _height: int) -> Lines:
    """Return a line for each of the newest rounds, all on one scale; the latest first."""
    found: Sequence[Verdict] = scene.view.cycle.get("verdicts") or ()
    rows = [(verdict, scored(verdict)) for verdict in reversed(found)][:SHOWN]
    known = [figures for _, figures in rows if figures is not None]
    if not known:
        return (line("no candidate was compared with an incumbent yet", Tone.FAINT),)
    low, high = _range(known)
    room = max(width - HEAD_WIDTH, MIN_SCALE)
    drawn = [_line(verdict, figures, low, high, room) for verdict, figures in rows]
    edges = f"{low:.3f}", f"{high:.3f}"
    blanks = " " * max(room - sum(map(len, edges)), 1)
    scale = (Cell(" " * HEAD_WIDTH + edges[0] + blanks + edges[1], Tone.FAINT),)
    return (*drawn, scale, *(line(fitted(each, width), Tone.FAINT) for each in LEGEND))


def scored(verdict: Verdict) -> Scored | None:
    """Return the figures of a verdict; None where candidate or incumbent have none."""
    candidate, incumbent = _finite(verdict.get("val_bpb")), _finite(verdict.get("incumbent_bpb"))
    if candidate is None or incumbent is None:
        return None
    lower, margin = _finite(verdict.get("lower_bound_bpb")), _finite(verdict.get("margin_bpb"))
    return Scored(
        candidate,
        None if lower is None else max(incumbent - lower, candidate),
        None if margin is None else incumbent - margin,
        incumbent,
    )


def _finite(value: float | None) -> float | None:
    """Return the value if it is finite, else None: NaN and infinity have no place on a scale."""
    return value if value is not None and math.isfinite(value) else None


def _range(known: Sequence[Scored]) -> tuple[float, float]:
    values = [value for each in known for value in each if value is not None]
    low, high = min(values), max(values)
    return (low, high) if high > low else (low - 0.01, high + 0.01)


def _line(verdict: Verdict, figures: Scored | None, low: float, high: float, room: int) -> Line:
    word = plain(verdict.get("verdict"))
    tone = VERDICT_TONES.get(word, Tone.NORMAL)
    head = (Cell(f"round {plain(verdict.get('round')):<4}", Tone.FAINT), Cell(f"{word:<10}", tone))
    if figures is None:
        return (*head, Cell("not compared", Tone.FAINT))
    marks: dict[int, Cell] = {}
    at = {name: _place(value, low, high, room) for name, value in figures._asdict().items()}
    here, worst = at["candidate"], at["worst"]
    if here is not None and worst is not None:
        marks |= {place: Cell(WHISKER, tone) for place in range(here, worst + 1)}
    if (place := at["incumbent"]) is not None:
        marks[place] = Cell(INCUMBENT, Tone.STRONG)
    if (limit := at["threshold"]) is not None:
        # A small margin is still one.
        marks[limit - (limit == place)] = Cell(THRESHOLD, Tone.WARN)
    if here is not None:
        marks[here] = Cell(CANDIDATE, tone)
    return (*head, *(marks.get(place, Cell(" ")) for place in range(room)))


def _place(value: float | None, low: float, high: float, room: int) -> int | None:
    return None if value is None else round((value - low) / (high - low) * (room - 1))
