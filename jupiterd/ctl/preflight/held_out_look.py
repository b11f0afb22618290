"""The line about which text on this machine a training run would hold out, before it starts.

Owns the text. A separate process (`workers.data.survey.split_preview`) reads the text as the run
will. Doesn't know where the line is shown.
"""

import os
import tempfile
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from jupiterd.ctl.preflight.source_survey import RESERVE_S, WITHIN_S, answer_of
from jupiterd.cycle.data.instruction_rows import CONVERSATIONS
from jupiterd.cycle.rounds.phase_summary import held_out_clusters
from jupiterd.formats import counted, plain, size
from jupiterd.path_text import path_of

PROGRAM = ("-P", "-m", "jupiterd.workers.data.survey.split_preview")

PLAIN = frozenset({".txt", ".md", ".rst", ".py"})
"""Suffixes of files that are one plain text each."""

BRIEFLY_S = 2.0
"""Seconds that a start waits for the preview, enough for a few texts."""


_NOUNS: Mapping[str, str] = dict.fromkeys(CONVERSATIONS, "conversation")
"""Form of a row -> its noun; other forms are texts."""


def held_out_lines(source: Mapping[str, Any]) -> list[str]:
    """Return a line about what would be held out of a run's source (see `DataSettings`)."""
    if source.get("kind") != "folder":
        return ["what is held out is known once its rows are read"] if source else []
    answer = _look(source, WITHIN_S - RESERVE_S)
    if isinstance(answer, str):
        return [f"what would be held out is {answer}"]
    return [held_out_line(answer)]


def nothing_held_out_lines(source: Mapping[str, Any]) -> list[str]:
    """Return a warning if a run can't hold out any of several texts here; else nothing.

    The end of a single text is held out, so a single text needs no preview.
    """
    if source.get("kind") != "folder" or not _has_several(path_of(str(source["path"]))):
        return []
    found = _look(source, BRIEFLY_S)
    if isinstance(found, str) or found.get("why_not") or not found["is_whole"]:
        return []
    if found["documents"] or found["read"] < 2:
        return []
    read = counted(found["read"], _NOUNS.get(str(found.get("form")), "text"))
    said = f"Nothing of {read} can be held out: all of them are nearly copies of each other"
    return [f"{said}, so that nothing will show whether it learns or only repeats them"]


def _has_several(path: Path) -> bool:
    """Return whether a path may hold more than one text."""
    if path.is_file():
        return path.suffix.lower() not in PLAIN
    below = (each for _, __, names in os.walk(path) for each in names if not each.startswith("."))
    first = list(islice(below, 2))
    return len(first) > 1 or any(Path(name).suffix.lower() not in PLAIN for name in first)


def _look(source: Mapping[str, Any], within_s: float) -> dict[str, Any] | str:
    request = {"source": dict(source), "within_s": within_s}
    with tempfile.TemporaryDirectory(prefix="jupiter-look-", ignore_cleanup_errors=True) as scratch:
        return answer_of(PROGRAM, request, Path(scratch))


def held_out_line(found: Mapping[str, Any]) -> str:
    """Return a line about the result of a preview."""
    if found.get("why_not"):
        return f"nothing can be held out: {plain(found['why_not'])}"
    read = counted(found["read"], _NOUNS.get(str(found.get("form")), "text"))
    of = f"of {read}" if found["is_whole"] else f"of the {read} that could be read in time"
    if not found["documents"]:
        why = ": all of them are nearly copies of each other" if found["read"] > 1 else ""
        return f"would hold out nothing {of}{why}"
    clusters = found["clusters"]
    names = plain(", ".join(found["names"]))
    more = ", ..." if clusters > len(found["names"]) else ""
    return (
        f"would hold out {found['documents']:,} {of}, {size(found['bytes'])}: "
        f"{held_out_clusters(clusters)} ({names}{more})"
    )
