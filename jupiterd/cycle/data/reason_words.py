"""Why something was left out, in words; documents and `--reason` carry the key.

Pure. Owns the words. Doesn't know who leaves anything out.
"""

from typing import Final

_WORDS: Final = {
    "no_field": "no text field",
    "needs_extra": "no reader installed",
    "unknown_form": "unknown format",
    "timed_out": "too slow",
    "leads_out": "link out of the folder",
    "robots": "forbidden by robots.txt",
    "license": "licence not permitted",
    "not_asked": "server silent",
    "refused": "refused by its server",
}
"""Of the keys that don't say it themselves."""


def reason_words(reason: str) -> str:
    """Return what people read for the key of a reason; one that nobody knows stays as it is."""
    return _WORDS.get(reason, reason.replace("_", " "))


def is_reason(reason: str, wanted: str) -> bool:
    """Say whether people who ask so mean this reason: by its key, or by its words."""
    return wanted in (reason, reason_words(reason))
