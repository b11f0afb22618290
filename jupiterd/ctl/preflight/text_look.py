"""The check that a folder or file has any text, before work on it is requested.

Owns that decision. A separate process (`workers.data.survey.split_preview`) reads the source as the
work will, until the first text; a plain text file needs no process. Doesn't know what is held out.
"""

import codecs
import os
import tempfile
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from jupiterd.ctl.preflight.held_out_look import PLAIN, PROGRAM
from jupiterd.ctl.preflight.source_survey import RESERVE_S, WITHIN_S, answer_of
from jupiterd.errors import EmptySourceError
from jupiterd.path_text import path_of

MOST_NAMES = 1_000
FIRST_BYTES = 4_096


def check_that_there_is_text(source: Mapping[str, Any]) -> None:
    """Raise EmptySourceError, as the work would, if all of a source was read and has no text.

    Raises nothing if that isn't known: this user may be allowed to read less than the worker.

    source: a folder or file, see `DataSettings`
    """
    if _has_plain_text(path_of(str(source["path"]))):
        return
    request = {"source": dict(source), "within_s": WITHIN_S - RESERVE_S, "most_texts": 1}
    with tempfile.TemporaryDirectory(prefix="jupiter-look-", ignore_cleanup_errors=True) as scratch:
        found = answer_of(PROGRAM, request, Path(scratch))
    if not isinstance(found, str) and found.get("code") == EmptySourceError.code:
        raise EmptySourceError(found["why_not"], found["hint"])


def _has_plain_text(path: Path) -> bool:
    """Return whether one of the first files is plain text; False if there are JSON files."""
    files = [path] if path.is_file() else list(islice(_files_below(path), MOST_NAMES))
    if any("json" in file.name.lower() for file in files):
        return False
    return any(_begins_with_text(file) for file in files if file.suffix.lower() in PLAIN)


def _files_below(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        files = (Path(folder, name) for name in names if not name.startswith("."))
        yield from (file for file in files if not file.is_symlink())


def _begins_with_text(file: Path) -> bool:
    try:
        with file.open("rb") as stream:
            text = codecs.getincrementaldecoder("utf-8")().decode(stream.read(FIRST_BYTES))
    except (OSError, ValueError):
        return False
    return bool(text.strip()) and "\0" not in text
