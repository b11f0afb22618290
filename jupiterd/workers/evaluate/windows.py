"""How a long text passes through a model of short context: overlapping windows.

Owns which tokens stand in which window and which of them are scored there. Doesn't know the model.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Window:
    """Part of a document: positions of the stream `end mark, token 0, token 1, ...`."""

    document: int
    start: int
    """First position that is fed."""
    stop: int
    """One past the last position that is fed; position p predicts position p + 1."""
    score_from: int
    """First position whose prediction counts; those before are context alone."""


class BatchSize(NamedTuple):
    """What passes through a model together at most."""

    windows: int
    tokens: int
    """Of all windows together, each as long as the longest; a longer one passes alone."""


def windows_of(document: int, tokens: int, context: int) -> Iterator[Window]:
    """Yield windows that score each of a document's tokens once.

    Each window but the first begins with a quarter of context that was scored before, so that every
    token but those at the beginning is predicted from a quarter of a window or more.
    """
    overlap = context // 4
    scored = 0
    while scored < tokens:
        start = max(0, scored - overlap)
        stop = min(tokens, start + context)
        yield Window(document, start, stop, scored)
        scored = stop


def batches_of(windows: Sequence[Window], most: BatchSize) -> Iterator[list[Window]]:
    """Yield windows that pass through the model together, each once; the longest come first."""
    # Windows of a length stand together, so that little is computed for padding.
    ordered = sorted(windows, key=lambda window: window.start - window.stop)
    start = 0
    while start < len(ordered):
        length = ordered[start].stop - ordered[start].start
        count = max(1, min(most.windows, most.tokens // max(1, length)))
        yield ordered[start : start + count]
        start += count
