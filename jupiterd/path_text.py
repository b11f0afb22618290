"""A path as text that can travel and be shown, whatever bytes its names are made of.

Owns that form: what isn't UTF-8 is written as Python escapes a byte. Doesn't know who names a
path, or what lies there. Messages, facts and files of settings take valid UTF-8 alone.
"""

import os
import re
from contextlib import suppress
from pathlib import Path

_ESCAPED = re.compile(rb"\\x([89a-f][0-9a-f])")


def path_text(path: Path | str) -> str:
    """Return a path, or a name, as text that is valid UTF-8."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def path_of(text: str) -> Path:
    """Return the path that a text names; `~` is the home folder, and `~me` that of somebody."""
    path = Path(text)
    with suppress(RuntimeError):  # nobody here is called so
        path = path.expanduser()
    if not _ESCAPED.search(os.fsencode(path)) or path.exists():
        return path
    raw = _ESCAPED.sub(lambda found: bytes((int(found[1], 16),)), os.fsencode(path))
    return Path(os.fsdecode(raw))
