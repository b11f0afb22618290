"""Which numbers of four parts are no address: `version 3.7.7.1`, `lib-1.2.3.4.tar.gz`.

Owns that question, for a number and the text around it. Pure. In doubt it's an address: a word that
says "version" has to stand before the number, or the name of a file around it. A number that is
called a version once is one wherever the same text has it.
"""

import re
from functools import lru_cache
from typing import Final

_NUMBER: Final = r"\d{1,3}(?:\.\d{1,3}){3}"
_ENDS: Final = r"(?![\w.]*\d|\w)"

_WORD: Final = (
    r"\b(?:versions?|versi[oó]n(?:es)?|ver\.|releases|changelog"
    r"|(?:in|of|since|from|the|this|that|with|before|after|until|to|bugfix|patch|stable|latest)"
    r"\s{1,3}release|release\s{1,3}(?:notes?|log)\s{1,3}(?:for|of)"
    r"|(?<=[\w-] )(?-i:Release)|\d{4}-\d\d-\d\d\s?(?=\())"
)
"""One before a number says that it is a version. `release` alone is what is done to an address, and
`2011-06-28 (3.7.7.1)` is how lists of changes begin."""

_BETWEEN: Final = (
    r"\s{0,3}(?:number\b|n[uú]mero\b|is\b|es\b)?\s{0,3}[:=]?\s{0,3}[\"'`(*]{0,3}\s{0,1}"
)
_LISTED: Final = (
    r"(?:v?\d{1,4}(?:\.\d{1,4}){1,3}[\"'`)*]{0,3}\s{0,3}"
    r"(?:,|/|-|\u2013|and\b|or\b|to\b|through\b|y\b|o\b|a\b|hasta\b)\s{0,3}[\"'`(*]{0,3}){0,8}"
)
_CALLED: Final = re.compile(
    rf"{_WORD}{_BETWEEN}{_LISTED}v?(?P<number>{_NUMBER}){_ENDS}", re.IGNORECASE
)

_FILE: Final = re.compile(
    r"(?<![\w+])(?!(?:ip|hosts?|server|node|addr|peer|client|ec2|dns|ns|gw|gateway|worker|lease)[._-])"
    rf"[A-Za-z][A-Za-z0-9+]*(?:[._-][A-Za-z0-9+]+){{0,6}}?[-_](?P<number>{_NUMBER})"
    r"(?=-\d{1,4}\b|[-_.](?:src|orig|amd64|i386|x86_64|aarch64|linux|win32|win64|tar|tgz|zip|deb|rpm"
    r"|whl|jar|exe|msi|dmg|gem|gz|xz|bz2|dsc|so)\b)"
)
"""A name with the number in it, as files of packages are called. It begins where a run of letters
and plus signs does: at each letter of `a+a+a+...` a search would take the square of its length."""


def is_version(text: str, number: str) -> bool:
    """Say whether a text calls a number of four parts a version somewhere."""
    return number in _versions_of(text)


@lru_cache(maxsize=1)  # it is asked of each number in a text, one text after the other
def _versions_of(text: str) -> frozenset[str]:
    return frozenset({match["number"] for match in _FILE.finditer(text)} | _called(text))


def _called(text: str) -> set[str]:
    """Return the numbers behind a word that says so; of a list each of them."""
    found: set[str] = set()
    for match in _CALLED.finditer(text):
        found.update(re.findall(rf"(?<![\d.]){_NUMBER}(?![\d.]*\d)", match[0]))
    return found
