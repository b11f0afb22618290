"""What fills a screen of its own: a machine, a sample's provenance, a verdict with its answers.

Pure. Owns how the lines stand on the screen. A machine's are those of `jupiterctl node show`, a
sample's those of `jupiterctl data why`, and a verdict's the sentences that the gate has for it.
"""

from jupiter_tui.drawings.primitives.lines import Lines, Tone, line, wrapped
from jupiter_tui.drawings.primitives.thresholds import VERDICT_TONES
from jupiter_tui.model.scene import Scene
from jupiter_tui.model.view import WatchedDocument
from jupiterd.cluster.text.node_page import page
from jupiterd.cycle.data.provenance_lines import why_lines
from jupiterd.cycle.rounds.answer_lines import LineKind, answer_lines
from jupiterd.formats import printable

HEADS = ("LAST TEN MINUTES", "LINK ", "log")
"""How the headings of a machine's page begin."""

FURTHER = "  "
"""Before what doesn't fit into a sentence's first line."""

PROMPTS_SHOWN = 5

ANSWER_TONES = {
    LineKind.TITLE: Tone.FAINT,
    LineKind.PROMPT: Tone.NOTE,
    LineKind.HEAD: Tone.STRONG,
    LineKind.ANSWER: Tone.NORMAL,
    LineKind.NOTE: Tone.WARN,
}


def machine(scene: Scene, width: int, noun: str) -> Lines:
    """Return what a machine is and does, how busy it was, and its log; or why there is none."""
    watched = scene.view.watched(noun)
    if not watched.document:
        return _missing(watched)
    words = page(watched.document, draws=not scene.options.is_ascii, columns=max(width, 20))
    return tuple(line(each, _machine_tone(each, at)) for at, each in enumerate(words))


def _machine_tone(words: str, at: int) -> Tone:
    if at == 0:
        return Tone.STRONG
    return Tone.FAINT if words.startswith(HEADS) else Tone.NORMAL


def provenance(scene: Scene, noun: str) -> Lines:
    """Return the whole chain of records that a sample comes from, or why it isn't known."""
    watched = scene.view.watched(noun)
    why = watched.document.get("why")
    if not why:
        return _missing(watched)
    return tuple(line(each, _provenance_tone(each)) for each in why_lines(why))


def _provenance_tone(words: str) -> Tone:
    return Tone.STRONG if words.lstrip().startswith("sample ") else Tone.NORMAL


def explained(scene: Scene, width: int, noun: str) -> Lines:
    """Return the gate's explanation of a verdict, wrapped to the width; or why there is none."""
    watched = scene.view.watched(noun)
    verdict = watched.document.get("verdict") or {}
    if not verdict:
        return _missing(watched)
    tone = VERDICT_TONES.get(str(verdict.get("verdict")), Tone.NORMAL)
    sentences = [printable(str(each)) for each in verdict.get("explained") or ()]
    parts = [part for sentence in sentences for part in wrapped(sentence, width, FURTHER)]
    return tuple(line(part, tone if at == 0 else Tone.NORMAL) for at, part in enumerate(parts))


def answered(scene: Scene, width: int, noun: str) -> Lines:
    """Return what the compared models wrote to the same prompts; nothing where nobody knows it."""
    verdict = scene.view.watched(noun).document.get("verdict") or {}
    answers = verdict.get("answers")
    if not answers:
        return ()
    lines = answer_lines(answers, width, PROMPTS_SHOWN)
    return tuple(line(each.text, ANSWER_TONES[each.kind]) for each in lines)


def _missing(watched: WatchedDocument) -> Lines:
    return (line(printable(watched.trouble) or "asking for it", Tone.FAINT),)
