"""Secrets and personal data, taken out of a text before it is stored.

Owns what counts as one and what stands in its place. Doesn't know where texts come from.

Secrets are replaced, not their documents dropped: the code around a key is as good as other code,
and the collector has no second way for a text. What stands in their place is of the same form
(an address for an address, letters for a token), so that code still parses, and is never taken for
a secret itself, so that cleaning twice changes nothing.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from jupiterd.address_ranges import is_public
from jupiterd.cycle.text_rules.version_numbers import is_version

MIN_ENTROPY_BITS = 3.0
"""Bits for each character below which an assigned value is a word or a placeholder."""

EMAIL = "email@example.com"
IP_ADDRESS = "192.0.2.1"  # RFC 5737, for documentation
PHONE = "+1-202-555-0100"  # kept free for fiction
REMOVED = "REMOVED_SECRET"


class Cleaned(NamedTuple):
    """A text without secrets, and how many of each kind were in it."""

    text: str
    counts: Mapping[str, int]


@dataclass(frozen=True)
class _Kind:
    name: str
    hints: tuple[str, ...]
    """In lower case; a text without any of them has none of this kind."""
    pattern: re.Pattern[str]
    replacement: Callable[[re.Match[str]], str]
    """What stands in its place; the match itself where it is none after all."""


def cleaned(text: str) -> Cleaned:
    """Return the text with every secret and personal datum replaced, and counts by kind."""
    counts: dict[str, int] = {}
    lower = text.lower()
    for kind in _KINDS:
        if any(map(lower.__contains__, kind.hints)):
            text, replaced = _replaced(text, kind)
            if replaced:
                counts[kind.name] = replaced
    return Cleaned(text, counts)


def _replaced(text: str, kind: _Kind) -> tuple[str, int]:
    replaced = 0

    def put(match: re.Match[str]) -> str:
        nonlocal replaced
        new = kind.replacement(match)
        replaced += new != match[0]
        return new

    return kind.pattern.sub(put, text), replaced


def entropy_bits(value: str) -> float:
    """Return how many bits a character of the value tells, by its own frequencies."""
    shares = [times / len(value) for times in Counter(value).values()]
    return -sum(share * math.log2(share) for share in shares)


def _key(match: re.Match[str]) -> str:
    """Replace the key alone: the marks around it may be what the text is about."""
    return match["head"] + _KEY_PIECE.sub(REMOVED, match["body"])


def _token(match: re.Match[str]) -> str:
    return REMOVED if any(map(str.isdigit, match[0])) else match[0]


def _login(match: re.Match[str]) -> str:
    return match[0] if match["value"] == REMOVED else f"{match['before']}{REMOVED}@"


def _assigned(match: re.Match[str]) -> str:
    value = match["value"]
    is_mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    is_secret = is_mixed and entropy_bits(value) >= MIN_ENTROPY_BITS
    return f"{match['before']}{REMOVED}{match['after']}" if is_secret else match[0]


def _email(match: re.Match[str]) -> str:
    host = match["host"].lower()
    is_example = host.endswith(("example.com", "example.org", "example.net", ".example"))
    is_login = match[0].startswith(f"{REMOVED}@")
    return match[0] if is_example or is_login else EMAIL


def _phone(match: re.Match[str]) -> str:
    return match[0] if "555-01" in match[0] else PHONE


def _ip_address(match: re.Match[str]) -> str:
    if _is_section_number(match) or is_version(match.string, match[0]):
        return match[0]
    return IP_ADDRESS if is_public(match[0]) else match[0]


def _is_section_number(match: re.Match[str]) -> bool:
    """Say whether it numbers a heading or a line of contents: `#### 9.2.1.1. Using displays`."""
    text, start = match.string, match.start()
    before = text[text.rfind("\n", 0, start) + 1 : start].strip(" \t")
    after = text[match.end() : match.end() + 2]
    is_first = not before.strip("#-*+")
    return is_first and (after == ". " or (before.startswith("#") and after[:1] == " "))


_KEY_PIECE = re.compile(r"(?<!\\)[A-Za-z0-9+/=]{4,}")
_DASHES = "-{1,2}(?!-)"
"""None of those around the words BEGIN and END."""
# In source code a key stands between quotes, its line ends as escapes, or in a comment, indented as
# deep as you like; in a mail it is quoted, in a patch added; it may lack its end.
_KEY_MARKS = r"\s\"'`\\#*/;,+>|%"
_PRIVATE_KEY = re.compile(
    r"(?P<head>-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----)"
    rf"(?P<body>(?:(?:[nrt{_KEY_MARKS}]|{_DASHES}){{1,400}}+"
    r"(?:[A-Z][A-Za-z-]{1,20}: [^\n\\]{1,80}+)?+){1,10}+"
    rf"[A-Za-z0-9+/=]{{16}}(?:[A-Za-z0-9={_KEY_MARKS}]|{_DASHES}){{0,8192}}+)"
)
_TOKENS = re.compile(
    r"(?<![\w-])(?:"
    r"(?:AKIA|ASIA)[A-Z0-9]{16}\b"  # Amazon
    r"|AIza[\w-]{35}|ya29\.[\w-]{20,200}"  # Google
    r"|gh[oprsu]_[A-Za-z0-9]{36,255}\b|github_pat_\w{60,90}\b"  # GitHub
    r"|glpat-[\w-]{20,50}"  # GitLab
    r"|hf_[A-Za-z0-9]{30,40}\b"  # Hugging Face
    r"|sk-(?:ant-|proj-)?[\w-]{20,200}"  # of makers of language models
    r"|[rs]k_(?:live|test)_[A-Za-z0-9]{16,100}\b"  # Stripe
    r"|xox[abeprs]-[\w-]{10,200}"  # Slack
    r"|npm_[A-Za-z0-9]{36}\b|pypi-[\w-]{50,250}"
    r"|SG\.[\w-]{16,32}\.[\w-]{30,60}"  # SendGrid
    r"|eyJ[\w-]{10,1000}\.eyJ[\w-]{10,4000}\.[\w-]{10,1000})"  # JSON Web Token
)
_LOGIN = re.compile(
    r"(?P<before>\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{1,64}:)(?P<value>[^\s/:@]{1,128})@"
)
_ASSIGNED = re.compile(
    r"(?P<before>\b\w{0,40}(?:passw(?:or)?d|secret|token|api_?key|access_?key|auth_?key)\w{0,20}"
    r"[\"']?\s{0,4}(?:=|:|=>|:=)\s{0,4}(?P<quote>[\"']))(?P<value>[^\s\"']{8,200})"
    r"(?P<after>(?P=quote))",
    re.IGNORECASE,
)
_EMAIL = re.compile(
    r"(?<![\w.+-])[A-Za-z0-9][\w.+-]{0,63}@(?P<host>(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24})\b"
)
_PHONE = re.compile(
    r"(?<![\w.+-])(?:\+\d{1,3}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d{1,4}(?:[ .-]\d{2,8}){1,4}"
    r"|\(\d{3}\) ?\d{3}[ .-]\d{4}|\d{3}-\d{3}-\d{4})(?![\w-])"
)
_IP_ADDRESS = re.compile(r"(?<![\w.])(?<!v)\d{1,3}(?:\.\d{1,3}){3}(?![\w.]*\d|\w)")

_KINDS = (
    _Kind("private-key", ("private key",), _PRIVATE_KEY, _key),
    _Kind(
        "token",
        (
            "akia", "asia", "aiza", "ya29.", "gho_", "ghp_", "ghr_", "ghs_", "ghu_", "github_pat_",
            "glpat-", "hf_", "sk-", "k_live_", "k_test_", "xox", "npm_", "pypi-", "sg.", "eyj",
        ),
        _TOKENS,
        _token,
    ),
    _Kind("login", ("://",), _LOGIN, _login),
    _Kind("password", ("passw", "secret", "token", "key"), _ASSIGNED, _assigned),
    _Kind("email", ("@",), _EMAIL, _email),
    _Kind("phone", ("+", "(", "-"), _PHONE, _phone),
    _Kind("ip-address", (".",), _IP_ADDRESS, _ip_address),
)  # fmt: skip
