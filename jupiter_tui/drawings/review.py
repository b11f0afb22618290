"""What a phase has made: what people look at before they let a cycle go on.

Pure. Owns the words. What samples say is somebody else's text: nothing of it steers the terminal.
"""

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from jupiter_tui.drawings.primitives.lines import Cell, Line, Lines, Tone, line
from jupiter_tui.model.scene import Scene
from jupiterd.cycle.data.reason_words import reason_words
from jupiterd.formats import plain, printable
from jupiterd.ids import short

LABEL_WIDTH = 10

Document = Mapping[str, Any]


def review(scene: Scene, width: int, noun: str) -> Lines:
    """Return what came in and went out, why text was dropped, some of it, and the settings."""
    watched = scene.view.watched(noun)
    found = watched.document.get("review") or {}
    if not found:
        return (line(printable(watched.trouble) or "asking for it", Tone.FAINT),)
    return tuple(_lines(found, width))


def _lines(found: Document, width: int) -> Iterator[Line]:
    how = "is running" if found.get("state") == "running" else "has ended"
    yield line(
        f"{plain(found.get('domain'))}, round {plain(found.get('round'))}: "
        f"{plain(found.get('phase'))} {how}", Tone.STRONG,
    )  # fmt: skip
    yield _labelled("in", _count(found.get("in")))
    yield _labelled("out", _count(found.get("out")))
    if found.get("detail"):
        yield _labelled("detail", plain(found["detail"]))
    dropped: dict[str, int] = found.get("dropped") or {}
    for reason, count in sorted(dropped.items(), key=itemgetter(1), reverse=True):
        yield _labelled("dropped", f"{_count(count)} {plain(reason_words(reason))}")
    yield from _samples("kept", found.get("kept_samples") or (), width)
    yield from _samples("dropped", found.get("dropped_samples") or (), width)
    if found.get("settings"):
        yield line("")
        yield line("settings that can be changed for phases that haven't begun", Tone.FAINT)
        for key, value in sorted(found["settings"].items()):
            yield line(f"  {plain(key)}={plain(value)}")


def _samples(what: str, samples: Sequence[Document], width: int) -> Iterator[Line]:
    if not samples:
        return
    yield line("")
    yield line(f"{what}, {len(samples)} of them", Tone.FAINT)
    for sample in samples:
        why = f" {plain(sample['reason'])}" if sample.get("reason") else ""
        head = f"{short(str(sample.get('id')))}{why}  {plain(sample.get('source_uri'))}"
        yield line(f"  {head}", Tone.NOTE)
        text = " ".join(str(sample.get("text") or "").split())
        yield line(f"    {printable(text)[: max(width - 4, 0)]}")


def _labelled(label: str, words: str) -> Line:
    return Cell(f"{label:<{LABEL_WIDTH}}", Tone.FAINT), Cell(words)


def _count(value: object) -> str:
    return f"{value:,}" if isinstance(value, int | float) else plain(value)
