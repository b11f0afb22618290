"""Lines about what a command with --dry-run would order.

Pure. Doesn't know any command.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from jupiterd.formats import plain
from jupiterd.ids import short

LONGEST = 300
_NODE_ID = re.compile("[0-9a-f]{32}")
LINES_OF_A_FILE = 5
"""Texts with this many line ends or more, such as domain files, are shown as a count of lines."""


def dry_run_lines(document: Mapping[str, Any]) -> list[str]:
    """Return lines: the verb, its arguments, the prediction, and that nothing was changed."""
    arguments: Mapping[str, Any] = document["arguments"]
    unused = "size" if "init" in arguments else ""  # the given model has its own size
    lines = [
        f"  {plain(name)}: {_shown(value)}" for name, value in arguments.items() if name != unused
    ]
    more = map(plain, document.get("foretold", ()))
    return [f"would order {plain(document['verb'])}", *lines, *more, "nothing was changed"]


def _shown(value: object) -> str:
    """Return a short text for an argument; for a whole file, its number of lines."""
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, object]", value)
        return _value({name: _short(each) for name, each in fields.items()})
    return _value(_short(value))


def _short(value: object) -> object:
    if isinstance(value, str) and (count := value.count("\n")) >= LINES_OF_A_FILE:
        return f"{count:,} lines; -o json shows them"
    return value


def _value(value: object) -> str:
    if isinstance(value, str) and _NODE_ID.fullmatch(value):
        return short(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    shown = plain(text.replace("\n", " "))
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}..."
