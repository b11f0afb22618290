"""What the gate decided in each round, with its numbers and its reason; and the latest events.

Pure. Owns the texts. Doesn't know how the gate decides.
"""

from collections.abc import Mapping
from typing import Any

from jupiter_tui.drawings.primitives.lines import Cell, Lines, Tone, line, width_of, wrapped
from jupiter_tui.drawings.primitives.thresholds import VERDICT_TONES
from jupiter_tui.model.scene import Scene
from jupiterd.cycle.gate.shown_reason import shown_reason
from jupiterd.formats import plain

EVENTS_SHOWN = 8
INDENT = " " * 9
"""Before what stands below a verdict."""

COMPARED = {
    "incumbent_bpb": "incumbent",
    "byte_bpb": "order-2 byte model",
    "unigram_bpb": "unigram",
}
"""What a candidate is compared with, by the key of its bits per byte."""


def verdicts(scene: Scene, width: int, _height: int) -> Lines:
    """Return two lines or more for each verdict, the latest first."""
    found = scene.view.cycle.get("verdicts") or ()
    return tuple(drawn for item in reversed(found) for drawn in _verdict(item, width)) or (
        line("none yet: the gate decides at the end of each round", Tone.FAINT),
    )


def events(scene: Scene, _width: int, _height: int) -> Lines:
    """Return the latest events, the newest first."""
    found = scene.view.cycle.get("events") or ()
    latest = list(reversed(found))[:EVENTS_SHOWN]
    return tuple(line(plain(event.get("text"))) for event in latest) or (
        line("none yet", Tone.FAINT),
    )


def _verdict(item: Mapping[str, Any], width: int) -> Lines:
    word = plain(item.get("verdict"))
    others = [
        f"{label} {item[key]:.4f}" for key, label in COMPARED.items() if item.get(key) is not None
    ]
    head = (
        Cell(f"round {plain(item.get('round'))}  ", Tone.FAINT),
        Cell(word, VERDICT_TONES.get(word, Tone.NORMAL)),
        Cell(f"  {_bits(item.get('val_bpb'))}"),
    )
    compared = f" ({', '.join(others)})" if others else ""
    reason = shown_reason(str(item.get("reason") or ""))
    below = [plain(reason)] * bool(reason)
    if width_of((*head, Cell(compared))) <= width:
        head = (*head, Cell(compared))
    elif others:
        below.insert(0, ", ".join(others))
    parts = [part for each in below for part in wrapped(INDENT + each, width, "  ")]
    return (head, *map(line, parts))


def _bits(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.4f} bits per byte"
