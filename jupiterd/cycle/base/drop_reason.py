"""Why a text isn't trained on.

Owns the reasons and their names. Doesn't know what finds them.
"""

from enum import StrEnum
from typing import Final

DROP_REASONS_FILE: Final = "reasons.jsonl.zst"
"""Beside dropped samples, in their order: {"id", "kind", "reason", "source_uri"} on each line, and
where a rule measured something {"measure", "value", "limit"}."""

NOTHING_LEFT_HINT: Final = (
    "look at the data sources, and at `language` in the domain file, which must be that of the "
    "text; `filters: {rules: minimal}` puts nearly every rule out of force"
)


class DropReason(StrEnum):
    """Why a text isn't trained on."""

    PURGED = "purged"
    """Of a source that people have purged, or made from it; found where batches are united."""
    TOO_SHORT = "too-short"
    TOO_LONG = "too-long"
    FEW_LETTERS = "few-letters"
    REPEATED_LINES = "repeated-lines"

    MINIFIED = "minified"
    GENERATED = "generated"
    VENDORED = "vendored"
    COMMENTS = "comments"
    """Nearly nothing but comments."""
    UNPARSABLE = "unparsable"

    OTHER_LANGUAGE = "other-language"
    """Prose in another language than the domain's; found by the worker, which has the model."""
    ODD_WORDS = "odd-words"
    SYMBOLS = "symbols"
    BULLETS = "bullets"
    ELLIPSES = "ellipses"
    NO_STOP_WORDS = "no-stop-words"
    NO_SENTENCES = "no-sentences"
    """Too few of its lines end as sentences do."""
    FEW_SENTENCES = "few-sentences"
    SHORT_LINES = "short-lines"
    LIST = "list"
    """A new line after every few words."""
    PLACEHOLDER = "placeholder"
    """Lorem ipsum."""
    CURLY_BRACKET = "curly-bracket"
    """Prose with code in it."""
    REPEATED_PARAGRAPHS = "repeated-paragraphs"
    FREQUENT_PHRASE = "frequent-phrase"
    REPEATED_PHRASES = "repeated-phrases"

    STUB = "stub"
    """A page of documentation that explains hardly anything: an index, a redirect, a template."""
    DATA = "data"
    """Settings and records that programs read."""

    LICENSE = "license"
    """The domain's license_policy doesn't permit it."""
    IN_HOLDOUT = "in-holdout"
    """Equal to a held-out text, or shares most of it; or has one of the domain's own questions."""
    DUPLICATE = "duplicate"
    """Equal to a text that is kept."""
    NEAR_DUPLICATE = "near-duplicate"
    """Nearly equal to a text that is kept."""
    QUALITY = "quality"
    """Reads less like the domain's reference than the texts that are kept."""
