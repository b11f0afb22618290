"""One machine: what it is, what it does, how busy it was, and what it has logged.

Pure. Owns how the page stands on the screen; its words are those of `jupiterctl node show`.
"""

from jupiter_tui.drawings.primitives.lines import Lines, Tone, line
from jupiter_tui.model.scene import Scene
from jupiterd.cluster.text.node_page import page
from jupiterd.formats import printable

HEADS = ("LAST TEN MINUTES", "LINK ", "log")
"""How lines begin that stand above others."""


def machine(scene: Scene, width: int, noun: str) -> Lines:
    """Return the page, or why there is none."""
    told = scene.view.told(noun)
    if not told.document:
        return (line(printable(told.trouble) or "asking for it", Tone.FAINT),)
    words = page(told.document, draws=not scene.options.is_ascii, columns=max(width, 20))
    return tuple(line(each, _tone(each, at)) for at, each in enumerate(words))


def _tone(words: str, at: int) -> Tone:
    if at == 0:
        return Tone.STRONG
    return Tone.FAINT if words.startswith(HEADS) else Tone.NORMAL
