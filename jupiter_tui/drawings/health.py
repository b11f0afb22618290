"""What is wrong, and what to do about it.

Pure. Owns the form; what counts as wrong is the daemon's business.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jupiter_tui.drawings.primitives.lines import Cell, Line, Lines, Tone, line, width_of
from jupiter_tui.drawings.primitives.thresholds import SEVERITY_TONES
from jupiter_tui.model.scene import Scene
from jupiterd.cluster.text.health_words import code_and_age
from jupiterd.formats import plain
from jupiterd.locations import directed

SEVERITY_WIDTH = 9


def health(scene: Scene, width: int, _height: int) -> Lines:
    """Return two lines for each warning: what is wrong and for how long, and the hint."""
    document = scene.view.document
    if not document:
        return (line("nothing heard yet", Tone.FAINT),)
    named, items = scene.options.named_dir, document.get("health", ())
    wrong = tuple(found for item in items for found in _warning(item, width, named))
    seen = (_dismissed(item) for item in document.get("dismissed") or ())
    return (*(wrong or (line("good: nothing is wrong", Tone.GOOD),)), *seen)


def _dismissed(item: Mapping[str, Any]) -> Line:
    """Return the line of what people have seen: it is still so."""
    return line(f"{'seen':<{SEVERITY_WIDTH}}{plain(item.get('title'))}", Tone.FAINT)


def _warning(item: Mapping[str, Any], width: int, folder: Path | None) -> tuple[Line, ...]:
    """Return its lines; where the first has no room for code and age, they have their own."""
    severity = plain(item.get("severity"))
    tone = SEVERITY_TONES.get(severity, Tone.NOTE)
    head = (
        Cell(f"{severity:<{SEVERITY_WIDTH}}", tone),
        Cell(plain(item.get("title")), Tone.STRONG),
    )
    suffix, margin = Cell(f"  {code_and_age(item)}", Tone.FAINT), " " * SEVERITY_WIDTH
    fits = width_of((*head, suffix)) <= width
    first = ((*head, suffix),) if fits else (head, line(margin + suffix.text.lstrip(), Tone.FAINT))
    hint = directed(plain(item.get("hint")), folder) if item.get("hint") else ""
    return (*first, line(f"{margin}hint: {hint}")) if hint else first
