"""Characters that differ between programs and mean nothing: line ends, byte order, ligatures.

Owns which ones are replaced, by what. Doesn't know lines or paragraphs.
"""

import re
import unicodedata

LIGATURES = {
    "\ufb00": "ff", "\ufb01": "fi", "\ufb02": "fl", "\ufb03": "ffi", "\ufb04": "ffl",
    "\ufb05": "st", "\ufb06": "st",
}  # fmt: skip
"""Letters that a typesetter joined into one character."""

SOFT_HYPHEN = "\u00ad"
"""Where a word may be cut; it is seen only where it was cut."""

_LIGATURE_TABLE = str.maketrans(LIGATURES)
_LIGATURE = re.compile("[\ufb00-\ufb06]")
_RARE_LINE_END = re.compile("[\u2028\u2029\x0b\x85]")
_BYTE_ORDER_MARK = "\ufeff"


def plain_line_ends(text: str) -> str:
    """Return the text with a line feed at the end of each line, and no mark of its byte order."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace(_BYTE_ORDER_MARK, "")


def without_trailing_blanks(text: str) -> str:
    """Return the text without blanks, tabs and form feeds at the ends of its lines."""
    return "\n".join([line.rstrip() for line in text.split("\n")])


def plain_letters(text: str) -> str:
    """Return the text with ligatures spelt out, and a letter and its accent in one character."""
    if text.isascii():
        return text.replace("\x0b", "\n")
    if _LIGATURE.search(text):
        text = text.translate(_LIGATURE_TABLE)
    return unicodedata.normalize("NFC", _RARE_LINE_END.sub("\n", text))
