"""What a training run would hold out of text on this machine, in a line, before it starts.

Owns the words. The look is a process of its own (`workers.data.split_look`), which reads as the run
itself will. Doesn't know where the line is shown.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jupiterd.ctl.preflight.source_survey import RESERVE_S, WITHIN_S, answer_of
from jupiterd.cycle.data.instruction_rows import CONVERSATIONS
from jupiterd.cycle.phase_summary import held_out_clusters
from jupiterd.formats import counted, plain, size

PROGRAM = ("-P", "-m", "jupiterd.workers.data.split_look")


_NOUNS: Mapping[str, str] = dict.fromkeys(CONVERSATIONS, "conversation")
"""What one row of a form is called; all else is text."""


def held_out_lines(source: Mapping[str, Any]) -> list[str]:
    """Return what would be held out of a run's data source, see `DataSettings`."""
    if source.get("kind") != "folder":
        return ["what is held out is told once its rows are read"] if source else []
    request = {"source": dict(source), "within_s": WITHIN_S - RESERVE_S}
    with tempfile.TemporaryDirectory(prefix="jupiter-look-", ignore_cleanup_errors=True) as scratch:
        answer = answer_of(PROGRAM, request, Path(scratch))
    if isinstance(answer, str):
        return [f"what would be held out is {answer}"]
    return [held_out_line(answer)]


def held_out_line(found: Mapping[str, Any]) -> str:
    """Return what a look has found, for people."""
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
