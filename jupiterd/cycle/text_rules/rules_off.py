"""Which rules a domain may put out of force, and how its file says so.

Owns these names, and what `minimal` stands for. Doesn't know what any rule asks. Nothing puts out
of force what protects others: licences, what is held out, what was purged, and equal texts.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final, Literal, cast, get_args

from jupiterd.cycle.base.drop_reason import DropReason

RuleName = Literal[
    "too-short",
    "too-long",
    "few-letters",
    "repeated-lines",
    "minified",
    "generated",
    "vendored",
    "comments",
    "unparsable",
    "other-language",
    "odd-words",
    "symbols",
    "bullets",
    "ellipses",
    "no-stop-words",
    "no-sentences",
    "few-sentences",
    "short-lines",
    "list",
    "placeholder",
    "curly-bracket",
    "repeated-paragraphs",
    "frequent-phrase",
    "repeated-phrases",
    "stub",
    "data",
]
"""A rule that judges a text by itself; it has the name of the reason that it gives."""

MINIMAL: Final = "minimal"
Rules = Literal["minimal"] | Mapping[RuleName, Literal["off"]]

_ALWAYS: Final = frozenset(
    {DropReason.TOO_LONG, DropReason.OTHER_LANGUAGE, DropReason.VENDORED, DropReason.DATA}
)
"""What `minimal` leaves in force: texts that are of no use for the domain, however well written."""


def rules_off(rules: Rules) -> frozenset[DropReason]:
    """Return the rules that aren't asked."""
    if isinstance(rules, str):
        return frozenset(map(DropReason, get_args(RuleName))) - _ALWAYS
    return frozenset(map(DropReason, rules))


def rules_mistake(rules: object) -> str:
    """Return what is wrong with what a file says of its rules; empty: nothing is."""
    if rules == MINIMAL:
        return ""
    expected = f"expected {MINIMAL}, or rules that are off such as {{few-letters: off}}"
    if not isinstance(rules, Mapping):
        return f"{expected}, got {rules}"
    names = get_args(RuleName)
    for name, value in cast("Mapping[object, object]", rules).items():
        if name not in names:
            near = get_close_matches(str(name), names, 1)
            return f"{expected}, got {name}" + (f"; did you mean {near[0]}?" if near else "")
        if value != "off":
            return f"{expected}, got {value} for {name}"
    return ""
