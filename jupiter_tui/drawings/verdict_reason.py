"""Why a verdict was what it was, in the sentences that the gate has for it.

Pure. Owns how the sentences stand on the screen. Doesn't know how they come about.
"""

from jupiter_tui.drawings.primitives.lines import Lines, Tone, line, wrapped
from jupiter_tui.drawings.primitives.thresholds import VERDICT_TONES
from jupiter_tui.model.scene import Scene
from jupiterd.formats import printable

FURTHER = "  "
"""Before what doesn't fit into a sentence's first line."""


def explained(scene: Scene, width: int, noun: str) -> Lines:
    """Return the explanation, wrapped to the width; or why there is none."""
    told = scene.view.told(noun)
    verdict = told.document.get("verdict") or {}
    if not verdict:
        return (line(printable(told.trouble) or "asking for it", Tone.FAINT),)
    tone = VERDICT_TONES.get(str(verdict.get("verdict")), Tone.NORMAL)
    sentences = [printable(str(each)) for each in verdict.get("explained") or ()]
    parts = [part for sentence in sentences for part in wrapped(sentence, width, FURTHER)]
    return tuple(line(part, tone if at == 0 else Tone.NORMAL) for at, part in enumerate(parts))
