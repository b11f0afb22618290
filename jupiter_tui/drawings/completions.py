"""What the newest model wrote when it was tried out.

Pure. Owns the tones that separate a prompt from its completion. Doesn't know who chose the prompts.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jupiter_tui.drawings.primitives.lines import ELLIPSIS, Cell, Line, Lines, Tone, line
from jupiter_tui.model.scene import Scene
from jupiterd.formats import plain, printable
from jupiterd.ids import short

SHOWN = 4
MOST_LINES = 3
"""Of one text."""

NONE_YET = "none yet: a model is tried out at the end of its round"
NEW_LINE = " ⏎ "


def completions(scene: Scene, width: int, _height: int) -> Lines:
    """Return some prompts, each with its completion."""
    cycle = scene.view.cycle
    if cycle.get("kind", "cycle") != "cycle":
        return (line("only models of cycles are tried out", Tone.FAINT),)
    watched = scene.view.watched(completions_noun(str(cycle.get("id") or "")))
    found: Mapping[str, Any] = watched.document.get("completions") or {}
    samples: Sequence[Mapping[str, Any]] = found.get("samples") or ()
    if not samples:
        return (line(plain(watched.trouble) if watched.trouble else NONE_YET, Tone.FAINT),)
    digest = short(str(found.get("model") or ""))
    return (
        line(f"the model of round {plain(found.get('round'))} ({digest})", Tone.FAINT),
        *(drawn for sample in samples[:SHOWN] for drawn in _sample(sample, max(width, 20))),
    )


def completions_noun(run: str) -> str:
    """Return the daemon's noun for the completions of a run's models."""
    return f"completions/{run}"


def _sample(sample: Mapping[str, Any], width: int) -> Sequence[Line]:
    """Return a prompt, then its completion in another tone; the panel wraps it."""
    prompt, text = (_one_line(sample.get(name)) for name in ("prompt", "text"))
    room = max(MOST_LINES * width - len(prompt) - len(ELLIPSIS), 0)
    cut = text if len(text) <= room else text[:room] + ELLIPSIS
    looping = (Cell("  [repeats itself]", Tone.WARN),) if sample.get("is_looping") else ()
    return ((Cell("> ", Tone.FAINT), Cell(prompt, Tone.NOTE), Cell(cut), *looping),)


def _one_line(text: object) -> str:
    return printable(str(text or "").replace("\n", NEW_LINE))
