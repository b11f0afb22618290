"""Which encoding bytes of text are in.

Owns the order in which that is decided, and what the language of a domain makes likely. Doesn't
know files or markup; guessing itself is charset-normalizer's work.
"""

import codecs
import re
from collections.abc import Mapping
from contextlib import suppress

from charset_normalizer import from_bytes

from jupiterd.workers.data.skips import SkipReason, UnreadableError

WESTERN = ("cp1252",)
"""What the HTML standard takes where nothing is said and no language says otherwise."""

LIKELY: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("bs", "cs", "hr", "hu", "pl", "ro", "sk", "sl", "sq"), ("cp1250", "iso8859_2")
    ),
    **dict.fromkeys(
        ("be", "bg", "mk", "ru", "sr", "uk"), ("cp1251", "koi8_r", "iso8859_5", "cp866")
    ),
    **dict.fromkeys(("et", "lt", "lv"), ("cp1257",)),
    **dict.fromkeys(("ar", "fa", "ur"), ("cp1256",)),
    "az": ("cp1254",),
    "el": ("cp1253",),
    "he": ("cp1255",),
    "ja": ("cp932", "euc_jp"),
    "ko": ("cp949",),
    "th": ("cp874",),
    "tr": ("cp1254",),
    "vi": ("cp1258",),
    "zh": ("gb18030", "big5"),
}
"""Language -> what its texts are in where they aren't in Unicode, the likeliest first."""

SAMPLE_BYTES = 1 << 15
"""Of lines that tell something; more of them change no answer."""

MIN_WHOLE_CHARACTERS = 10
"""So many characters of UTF-8 for each byte that is none: it is UTF-8 with a fault in it."""

MAX_CHAOS_APART = 0.15
"""By so much a guess may be worse than the best one, and is taken where it is likelier: short texts
of French or Portuguese are nearly that much worse as what they are in."""

MIN_GUESSED_BYTES = 64
"""Fewer tell a guess nothing: the likeliest encoding is taken that can be."""

MIN_UTF_16_BYTES = 16
MIN_READABLE = 0.98
"""Of the characters of UTF-16 without a mark: chance gives many that are none."""

MAX_BEYOND_ASCII = 0.4
"""Of the bytes of a text in Latin letters: most of those have no accent."""

MAX_STRAYS = 0.1
"""Of the characters of a text: more that couldn't be decoded, and it is none."""

MAX_CONTROLS = 0.001
"""More control characters than that aren't in any text."""

CANDIDATES = (
    "cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258",
    "cp874", "iso8859_2", "iso8859_5", "koi8_r", "cp866", "cp932", "euc_jp", "gb18030", "big5",
    "cp949",
)  # fmt: skip
"""Legacy encodings of the web."""

_LATIN = frozenset({"cp1252", "cp1250", "cp1254", "cp1257", "cp1258", "iso8859_2"})
_UTF_16 = ("utf-16-le", "utf-16-be")
_AS_ON_THE_WEB = {
    "ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254", "shift_jis": "cp932",
    "gb2312": "gb18030", "gbk": "gb18030", "euc_kr": "cp949",
}  # fmt: skip
"""Python's name of what is said -> what browsers take it for."""

_SEEN_BYTES = 4096
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_REPLACED = "\ufffd"
_CONTROLS = re.compile("[\x00-\x07\x0e-\x19\x1c-\x1f\x7f]")
_ESCAPED_JAPANESE = re.compile(rb"\x1b\$[@B].*\x1b\([BJ]", re.DOTALL)


def decoded(data: bytes, charset: str = "", language: str = "") -> str:
    """Return the text of bytes; a byte that is no part of it costs one character.

    Args:
        data: a whole text.
        charset: what its sender says, or the text itself; believed where it can be so.
        language: what texts of this place are in, such as `es`; empty: not known.

    Raises:
        UnreadableError: it is no text in any encoding.
    """
    found = (decode(data) for decode in _DETECTORS)
    text = next((text for text in found if text is not None), None)
    if text is None:
        text = _declared(data, charset)
    if text is None:
        text = _with_faults(data, "utf-8")
    if text is None:
        text = _guessed(data, language)
    if text is None or _is_noise(text):
        raise UnreadableError(SkipReason.NOT_TEXT)
    return text.replace("\0", "")


class Legacy:
    """Decodes the lines of one file: what is no UTF-8 is in the same encoding as the line before.

    A guess takes milliseconds, which a table of millions of rows hasn't.
    """

    def __init__(self, language: str = "") -> None:
        self._language = language
        self._encoding = ""

    def decoded(self, line: bytes) -> str:
        """Return the text of a line; raises UnreadableError where it is no text."""
        with suppress(UnicodeDecodeError):
            return line.decode("utf-8-sig")
        if self._encoding and (text := _strict(line, self._encoding)) is not None:
            return text
        text = decoded(line, language=self._language)
        likely = _likely(line, self._language)
        is_it = (each for each in (*likely, *CANDIDATES) if _strict(line, each) == text)
        self._encoding = next(is_it, "")
        return text


def _is_noise(text: str) -> bool:
    controls, strays = len(_CONTROLS.findall(text)), text.count(_REPLACED)
    return controls > MAX_CONTROLS * len(text) or strays > MAX_STRAYS * len(text)


def _marked(data: bytes) -> str | None:
    """Decode what begins with a mark of its byte order."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    return None


def _utf_16(data: bytes) -> str | None:
    """Decode UTF-16 without such a mark: blanks and line ends have a zero byte on one side."""
    head = data[:_SEEN_BYTES]
    if len(data) % 2 or len(head) < MIN_UTF_16_BYTES or 0 not in head:
        return None
    texts = ((head.decode(encoding, "replace"), encoding) for encoding in _UTF_16)
    text, encoding = max(texts, key=lambda found: sum(map(str.isascii, found[0])))
    readable = sum(char.isprintable() or char.isspace() for char in text)
    is_text = readable >= MIN_READABLE * len(text) and any(map(str.isascii, text))
    return data.decode(encoding, "replace") if is_text else None


def _utf_8(data: bytes) -> str | None:
    if _ESCAPED_JAPANESE.search(data[:SAMPLE_BYTES]):
        return _strict(data, "iso2022_jp")
    return _strict(data, "utf-8")


_DETECTORS = (_marked, _utf_16, _utf_8)
"""Those that need no word of anybody."""


def _declared(data: bytes, charset: str) -> str | None:
    """Decode as somebody says; what the web calls Latin-1 is windows-1252."""
    try:
        name = codecs.lookup(charset).name if charset else ""
    except LookupError:
        return None
    if not name or name.startswith("utf"):
        return None
    return _with_faults(data, _AS_ON_THE_WEB.get(name, name))


def _strict(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except (LookupError, UnicodeError):
        return None


def _with_faults(data: bytes, encoding: str) -> str | None:
    """Decode where nearly all bytes agree; None where too many don't."""
    try:
        text = data.decode(encoding, "replace")
    except (LookupError, UnicodeError):
        return None
    faults = text.count(_REPLACED) - data.count(_REPLACED.encode())
    beyond_ascii = len(text) - faults - len(text.encode("ascii", "ignore"))
    return text if faults * MIN_WHOLE_CHARACTERS <= beyond_ascii else None


def _guessed(data: bytes, language: str) -> str | None:
    """Decode as a guess says; of guesses that are about as good, the likelier one is taken.

    Where nothing can be guessed, as of rare words that look like noise, the likeliest that can be.
    """
    likely = _likely(data, language)
    sample = _telling(data)
    if len(sample) < MIN_GUESSED_BYTES and language not in LIKELY:
        for text in filter(None, (_strict(data, encoding) for encoding in likely)):
            return text
    found = [
        (match.chaos, {match.encoding, *match.could_be_from_charset})
        for match in from_bytes(sample, cp_isolation=list(CANDIDATES))
    ]
    least = min((chaos for chaos, _ in found), default=0.0)
    near = [names for chaos, names in found if chaos <= least + MAX_CHAOS_APART]
    for encoding in (*likely, *CANDIDATES):
        if any(encoding in names for names in (near if encoding in likely else near[:1])):
            return data.decode(encoding, "replace")
    return next(filter(None, (_strict(data, encoding) for encoding in likely)), None)


def _likely(data: bytes, language: str) -> tuple[str, ...]:
    """Return what a text of this language may be in, the likeliest first."""
    beyond = data[:SAMPLE_BYTES].translate(None, bytes(range(128)))
    found = [*LIKELY.get(language, ()), *WESTERN]
    if not any(byte < 0xA0 for byte in beyond):  # windows-1250 has frequent letters there
        found.sort(key=lambda encoding: encoding != "iso8859_2")
    if len(beyond) > MAX_BEYOND_ASCII * len(data[:SAMPLE_BYTES]):
        found = [encoding for encoding in found if encoding not in _LATIN]
    return tuple(found)


def _telling(data: bytes) -> bytes:
    """Return lines with bytes beyond ASCII, so many as a guess is made of."""
    if len(data) <= SAMPLE_BYTES:
        return data
    found = bytearray()
    for line in data.splitlines(keepends=True):
        if not line.isascii():
            found += line
        if len(found) >= SAMPLE_BYTES:
            break
    return bytes(found[: 2 * SAMPLE_BYTES])
