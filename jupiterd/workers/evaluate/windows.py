"""How a long text passes through a model of short context: overlapping windows.

Owns which tokens stand in which window and which of them are scored there. Doesn't know the model.
"""

from collections.abc import Iterator
from dataclasses import dataclass


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
