"""What is wrong, and what to do about it.

Pure. Owns the form; what counts as wrong is the daemon's business.
"""

from collections.abc import Mapping
from typing import Any

from jupiter_tui.drawings.lines import Cell, Line, Lines, Tone, line
from jupiter_tui.drawings.thresholds import SEVERITY_TONES
from jupiter_tui.scene import Scene
from jupiterd.formats import plain

SEVERITY_WIDTH = 9


def health(scene: Scene, _width: int, _height: int) -> Lines:
    """Return two lines for each warning: what is wrong, and the hint."""
    document = scene.view.document
    if not document:
        return (line("nothing heard yet", Tone.FAINT),)
    return tuple(
        found for item in document.get("health", ()) for found in _warning(item)
    ) or (line("good: nothing is wrong", Tone.GOOD),)  # fmt: skip


def _warning(item: Mapping[str, Any]) -> tuple[Line, ...]:
    severity = plain(item.get("severity"))
    tone = SEVERITY_TONES.get(severity, Tone.NOTE)
    head = (
        Cell(f"{severity:<{SEVERITY_WIDTH}}", tone),
        Cell(plain(item.get("title")), Tone.STRONG),
        Cell(f"  {plain(item.get('code'))}", Tone.FAINT),
    )
    if not item.get("hint"):
        return (head,)
    return head, line(f"{'':<{SEVERITY_WIDTH}}hint: {plain(item['hint'])}")
