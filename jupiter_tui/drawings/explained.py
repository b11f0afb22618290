"""Why a verdict was what it was, in the sentences that the gate has for it.

Pure. Owns how the sentences stand on the screen. Doesn't know how they come about.
"""

import textwrap
from collections.abc import Iterator

from jupiter_tui.drawings.lines import Lines, Tone, line
from jupiter_tui.drawings.thresholds import VERDICT_TONES
from jupiter_tui.scene import Scene
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
    wrapped = [part for sentence in sentences for part in _wrapped(sentence, width)]
    return tuple(line(part, tone if at == 0 else Tone.NORMAL) for at, part in enumerate(wrapped))


def _wrapped(sentence: str, width: int) -> Iterator[str]:
    indent = sentence[: len(sentence) - len(sentence.lstrip())]
    yield from textwrap.wrap(
        sentence, max(width, 20), subsequent_indent=indent + FURTHER
    ) or [""]  # fmt: skip
