"""What stands beside a line of health, wherever people read it.

Pure. Owns the words; jupiterctl, the doctor and the dashboard say the same. Imports little: short
commands wait for it.
"""

from collections.abc import Mapping
from typing import Any, Final

from jupiterd.formats import duration, plain

NEWS: Final = frozenset({"loss-nan", "run-failed", "verdict"})
"""Codes of what happened, which is never over: it is only told no longer."""

OF_THE_TEXT: Final = frozenset({"mostly-dropped"})
"""Codes of what is wrong with a cycle's text: the cluster itself is well."""

WELL_ANYWAY: Final = OF_THE_TEXT | {
    "not-offered",
    "shared-address",
    "clock-differs",
    "tcp-silent",
    "tcp-blocked",
    "gang-knocked",
    "port-crowded",
}
"""Codes that make nobody ill, `status --check` included: a member could else do that by asking, and
a stranger by announcing itself or by knocking."""

OF_THIS_NODE: Final = frozenset({"clone", "removed", "disk", "link-out"})
"""Codes of what is wrong with the machine that tells, though no line names it."""

WHOLE_SECONDS_BELOW_S: Final = 10


def code_and_age(line: Mapping[str, Any]) -> str:
    """Return the code of a line and how long it has held, such as `node-gone for 4 min 10 s`."""
    return f"{plain(line.get('code'))} {age(line)}".rstrip()


def age(line: Mapping[str, Any]) -> str:
    """Return how long a line has held, or ago it happened; empty where a daemon doesn't say."""
    age_s = line.get("age_s")
    if not isinstance(age_s, int | float):
        return ""
    text = duration(age_s) if age_s >= WHOLE_SECONDS_BELOW_S else f"{age_s:.0f} s"
    return f"{text} ago" if line.get("code") in NEWS else f"for {text}"
