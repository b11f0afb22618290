"""Where a sample comes from: the whole chain of records.

Pure. Owns how the lines stand on the screen; their words are those of `jupiterctl data why`.
"""

from jupiter_tui.drawings.primitives.lines import Lines, Tone, line
from jupiter_tui.model.scene import Scene
from jupiterd.cycle.data.provenance_lines import why_lines
from jupiterd.formats import printable


def provenance(scene: Scene, noun: str) -> Lines:
    """Return the chain, or why it isn't known."""
    told = scene.view.told(noun)
    why = told.document.get("why")
    if not why:
        return (line(printable(told.trouble) or "asking for it", Tone.FAINT),)
    return tuple(line(each, _tone(each)) for each in why_lines(why))


def _tone(words: str) -> Tone:
    return Tone.STRONG if words.lstrip().startswith("sample ") else Tone.NORMAL
