"""How numbers, names and tables are written for people.

Pure. Doesn't know what any of them mean.
"""

import math
import unicodedata
from collections.abc import Sequence

MISSING = "N/A"
"""What stands where there is no value; never 0."""

ROUNDING = 1e-4
"""Of a loss: the same weights score alike to that share, on any engine and however often."""

_FEW_TOKENS, _MANY_TOKENS = 100_000, 100_000_000
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def plain(value: object) -> str:
    """Return the value as one line that can't steer the terminal, whoever sent it."""
    return MISSING if value is None or value == "" else printable(str(value))


def printable(text: str) -> str:
    """Return the text as one line that can't steer the terminal; a no-break space is a space."""
    return "".join(char if char.isprintable() else _shown(char) for char in text)


def _shown(char: str) -> str:
    return " " if unicodedata.category(char) == "Zs" else "?"


def columns_of(character: str) -> int:
    """Return the width of a character on a terminal, in columns."""
    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def duration(seconds: float) -> str:
    """Return a length of time, such as `12 s`, `1 min 05 s` or `2 h 03 min`."""
    if seconds < 10:
        return f"{max(seconds, 0):.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def rate(per_second: float) -> str:
    """Return a rate with about three digits, such as `0.25/s`, `12.5/s` or `1,250/s`."""
    if per_second >= 100:
        return f"{per_second:,.0f}/s"
    return f"{per_second:.1f}/s" if per_second >= 10 else f"{per_second:.2f}/s"


def size(count_bytes: float) -> str:
    """Return a size with its unit, 1 GiB = 1024^3 bytes."""
    unit = 0
    while count_bytes >= 1024 and unit < len(_UNITS) - 1:
        count_bytes, unit = count_bytes / 1024, unit + 1
    return f"{count_bytes:.0f} {_UNITS[unit]}" if unit == 0 else f"{count_bytes:.1f} {_UNITS[unit]}"


def bits_per_byte(nats_per_token: float, bytes_per_token: float) -> float:
    """Return a loss in the unit that is the same for all tokenizers; 0 where nobody knows it."""
    return nats_per_token / bytes_per_token / math.log(2) if bytes_per_token > 0 else 0.0


def is_worse(loss: float, than: float) -> bool:
    """Say whether a loss is higher than another, by more than rounding may come to; 0: unknown."""
    return 0 < than * (1 + ROUNDING) < loss


def bits_per_s(count: float) -> str:
    """Return a bandwidth with its unit, 1 Gbit/s = 1e9 bits each second."""
    if count >= 1e9:
        return f"{count / 1e9:.1f} Gbit/s"
    return f"{count / 1e6:,.0f} Mbit/s" if count >= 1e6 else f"{count / 1e3:,.0f} kbit/s"


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, such as `1 document` or `2,000 documents`.

    plural: of a noun that doesn't only get an s
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {plural or noun + 's'}"


def counted_tokens(tokens: float, of: float | None = None) -> str:
    """Return how many tokens, in millions where that says something: `0.80 million tokens`.

    of: what it is a part of, which chooses how it is told; None: itself
    """
    whole = tokens if of is None else of
    if whole < _FEW_TOKENS:
        return counted(round(tokens), "token")
    return f"{tokens / 1e6:,.{2 if whole < _MANY_TOKENS else 1}f} million tokens"


def table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Return the rows below their headers, every column as wide as its widest cell."""
    cells = [list(headers), *([plain(value) for value in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headers))]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
