"""Pages of manuals (roff with the macros man or mdoc) as Markdown.

Owns which requests are written as what; others are left out, and their arguments too. Doesn't know
how long lines are, or anything else that a typesetter needs.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping

from jupiterd.workers.data.extract.encodings import decoded
from jupiterd.workers.data.extractors.raw_document import RawDocument
from jupiterd.workers.data.skips import SkipReason, UnreadableError

_HEADS = re.compile(r"^\.\s*(TH|Dd|Dt|SH|Sh)\b", re.MULTILINE)
"""What a page of a manual has near its beginning."""

_BYTES_OF_HEADS = re.compile(_HEADS.pattern.encode(), re.MULTILINE)

_SPECIAL: Mapping[str, str] = {
    "aq": "'", "dq": '"', "lq": "\u201c", "rq": "\u201d", "oq": "\u2018", "cq": "\u2019",
    "bu": "\u2022", "em": "\u2014", "en": "\u2013", "hy": "-", "mi": "-", "co": "\u00a9",
    "rs": "\\", "ti": "~", "ha": "^", "ga": "`", "at": "@", "sh": "#", "Do": "$", "ba": "|",
    "la": "<", "ra": ">", "->": "\u2192", "<-": "\u2190", ">=": "\u2265", "<=": "\u2264",
    "'": "\u00b4", "`": "`", "tm": "\u2122", "rg": "\u00ae", "mu": "\u00d7", "Lq": "\u201c",
    "Rq": "\u201d", "fo": "\u2039", "fc": "\u203a", "Fo": "\u00ab", "Fc": "\u00bb", "sl": "/",
    "ci": "\u25cb", "**": "*", "mc": "\u00b5", "ts": "\u03c2", "S1": "\u00b9", "S2": "\u00b2",
    "or": "|", "ul": "_", "ss": "\u00df", "de": "\u00b0", "+-": "\u00b1", "!=": "\u2260",
    "Bq": "\u201e", "bq": "\u201a", "pl": "+", "eq": "=", "aa": "\u00b4", "pd": "\u2202",
    "ae": "\u00e6", "AE": "\u00c6", "oe": "\u0153", "OE": "\u0152", "/o": "\u00f8", "/O": "\u00d8",
    "/l": "\u0142", "/L": "\u0141", "-D": "\u00d0", "Sd": "\u00f0", "TP": "\u00de", "Tp": "\u00fe",
    "r!": "\u00a1", "r?": "\u00bf", "Eu": "\u20ac", "sc": "\u00a7", "*a": "\u03b1", "*b": "\u03b2",
    "*g": "\u03b3", "*d": "\u03b4", "*l": "\u03bb", "*m": "\u03bc", "*p": "\u03c0", "*s": "\u03c3",
    "*D": "\u0394", "*S": "\u03a3", "*W": "\u03a9", "di": "\u00f7", "no": "\u00ac", "if": "\u221e",
}  # fmt: skip

_ACCENTS: Mapping[str, str] = {
    ":": "\u0308", "'": "\u0301", "`": "\u0300", "^": "\u0302", "~": "\u0303", ",": "\u0327",
    "o": "\u030a", "v": "\u030c",
}  # fmt: skip
"""What stands before a letter in the name of a glyph, and the mark that it puts on it."""

_STRINGS: Mapping[str, str] = {
    "Aq": "'", "lq": "\u201c", "rq": "\u201d", "R": "\u00ae", "--": "\u2014",
}  # fmt: skip

_COMMENT = re.compile(r"""(?<!\\)((?:\\\\)*)\\["#].*""")

_ESCAPE = re.compile(
    r"""\\(?:
        "[^\n]*$ | \#[^\n]*$
        | f(?:\((?P<font2>..)|\[(?P<fontn>[^\]]*)\]|(?P<font>.))
        | \((?P<two>..) | \[(?P<name>[^\]\n]*)\] | \*\((?P<str2>..) | \*\[(?P<strn>[^\]]*)\] | \*.
        | s[+-]?(?:\[[^\]]*\]|\(..|\d) | [hvwxlLDoNbZRX]'[^'\n]*' | [kmMnFgVY](?:\[[^\]]*\]|\(..|.)
        | (?P<one>.)
    )""",
    re.VERBOSE | re.MULTILINE,
)
_ONE: Mapping[str, str] = {
    "-": "-", "e": "\\", "\\": "\\", " ": " ", "~": " ", "0": " ", "'": "\u00b4", "`": "`",
    "t": "\t", ".": ".", "_": "_",
}  # fmt: skip

_SECTIONS = {"SH": "## ", "Sh": "## ", "SS": "### ", "Ss": "### "}
_PARAGRAPHS = frozenset(
    {"PP", "P", "LP", "Pp", "sp", "HP", "RS", "RE", "Bl", "El", "YS", "Lp", "Sp"}
)
_LITERAL, _LITERAL_ENDS = frozenset({"nf", "EX", "Vb"}), frozenset({"fi", "EE", "TE", "Ve"})
_SKIPPED: Mapping[str, int | None] = {"EQ": None, "ig": 0, "de": 1, "am": 1, "de1": 1, "am1": 1}
"""What nobody reads -> which argument says what ends it, two dots where there is none."""
_FONTS = frozenset({"B", "I", "BR", "RB", "IR", "RI", "BI", "IB", "SM", "SB"})
_JOINED = frozenset({"BR", "RB", "IR", "RI", "BI", "IB"})
_LINKS = frozenset({"UR", "MT"})
_BLANKS = re.compile(r"\n{3,}")


def read(given: RawDocument) -> Mapping[str, str]:
    """Return the `text`; as it stands where it is no page of a manual.

    Raises:
        UnreadableError: it is none, or blank.
    """
    source = decoded(given.data, given.charset, given.language)
    text = _Page().markdown(source) if _HEADS.search(source) else source
    if not text.strip():
        raise UnreadableError(SkipReason.EMPTY)
    return {"text": text}


def is_page(beginning: bytes) -> bool:
    """Say whether a file that begins so is a page of a manual."""
    return bool(_BYTES_OF_HEADS.search(beginning))


class _Page:
    """One page: what was written of it so far, and what its next lines stand in."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._is_literal = False
        self._is_tag = False
        """The next line is what the paragraph behind it explains."""
        self._name = ""
        self._strings = dict(_STRINGS)
        self._skipped_until = ""
        """What stands behind the dot of the request that ends what nobody reads."""
        self._is_table_form = False
        """The next lines say how the columns of a table look; a dot ends them."""

    def markdown(self, source: str) -> str:
        """Return the whole page."""
        for line in source.replace("\\\n", "").splitlines():
            self._take(line.rstrip())
        self._end_literal()
        return _BLANKS.sub("\n\n", "\n".join(self._lines)).strip() + "\n"

    def _take(self, line: str) -> None:
        if self._skipped_until:
            if re.match(rf"\.\s*{re.escape(self._skipped_until)}(?![^\s\\])", line):
                self._skipped_until = ""
        elif self._is_table_form:
            if line.endswith("."):
                self._is_table_form = False
                self._begin_literal()
        elif line[:1] in (".", "'"):
            self._request(_COMMENT.sub(r"\1", line[1:]).strip())
        elif self._is_literal:
            self._lines.append(self._plain(line))
        else:
            self._say(self._plain(line).strip())

    def _say(self, text: str) -> None:
        """Write words of a paragraph, or what it is about."""
        if self._is_tag and text:
            self._is_tag = False
            self._lines += ["", f"**{text}**", ""]
        else:
            self._lines.append(text)

    def _request(self, line: str) -> None:
        name, _, rest = line.partition(" ")
        match name:
            case "TH" | "Dt":
                title = [self._plain(word) for word in _words(rest)[:2]]
                self._lines += [f"# {title[0].lower()}({''.join(title[1:])})" if title else "#", ""]
            case "ds":
                key, _, value = rest.partition(" ")
                self._strings.setdefault(key, self._plain(value.strip().removeprefix('"')))
            case _ if name in _SKIPPED:
                number = _SKIPPED[name]
                end = "EN" if number is None else next(iter(rest.split()[number:]), ".")
                self._skipped_until = end
            case "TS":
                self._is_table_form = True
            case _ if name in _SECTIONS:
                self._end_literal()
                self._lines += ["", _SECTIONS[name] + self._joined(rest, " "), ""]
            case _ if name in _PARAGRAPHS:
                self._lines.append("")
            case "TP" | "TQ":
                self._lines.append("")
                self._is_tag = True
            case "IP" | "It":
                self._item(name, rest)
            case _:
                self._words_of(name, rest)

    def _words_of(self, name: str, rest: str) -> None:
        """Write a request that stands in a sentence, or that begins or ends lines as they are."""
        if name in _LITERAL or (name == "Bd" and ("literal" in rest or "unfilled" in rest)):
            self._begin_literal()
        elif name in _LITERAL_ENDS or name == "Ed":
            self._end_literal()
        elif name in _FONTS:
            self._say(self._joined(rest, "" if name in _JOINED else " "))
        elif name in _LINKS:
            self._say(self._joined(rest, " "))
        elif name == "Xr":
            arguments = _words(rest)
            self._say(
                f"{arguments[0]}({arguments[1]}){''.join(arguments[2:])}" if arguments[1:] else rest
            )
        elif name == "Nd":
            self._lines.append(
                f"{self._lines.pop() if self._lines else ''} - {_inline(rest, self._plain)}"
            )
        elif name == "Nm":
            self._name = _inline(rest, self._plain) or self._name
            self._say(self._name)
        elif name in _INLINE:
            self._say(_inline(f"{name} {rest}", self._plain))

    def _item(self, name: str, rest: str) -> None:
        if name == "It":
            label = _inline(rest, self._plain)
        else:
            label = self._plain((_words(rest) or [""])[0])
        is_mark = label in ("", "\u2022", "-", "*", "o")
        number = re.fullmatch(r"\(?\d+[.)]?", label)
        if is_mark or number:
            self._lines += ["", "-" if is_mark else label]
        else:
            self._lines += ["", f"**{label}**", ""]

    def _begin_literal(self) -> None:
        if not self._is_literal:
            self._lines += ["", "```"]
            self._is_literal = True

    def _end_literal(self) -> None:
        if self._is_literal:
            self._lines += ["```", ""]
            self._is_literal = False

    def _joined(self, rest: str, between: str) -> str:
        return between.join(self._plain(word) for word in _words(rest)).strip()

    def _plain(self, text: str) -> str:
        """Return text with its escapes read: fonts and sizes are left out."""
        return _ESCAPE.sub(self._escape, text)

    def _escape(self, found: re.Match[str]) -> str:
        if (name := found["two"] or found["name"]) is not None:
            return _glyph(name)
        if (name := found["str2"] or found["strn"]) is not None:
            return self._strings.get(name, "")
        return _ONE.get(found["one"] or "", "")


def _glyph(name: str) -> str:
    """Return the character of this name; empty: nobody knows it."""
    if re.fullmatch(r"u[0-9A-F]{4,5}", name):
        return chr(int(name[1:], 16))
    if name not in _SPECIAL and len(name) == 2 and name[0] in _ACCENTS and name[1].isalpha():
        return unicodedata.normalize("NFC", name[1] + _ACCENTS[name[0]])
    return _SPECIAL.get(name, "")


def _words(rest: str) -> list[str]:
    """Return the arguments of a request; those in quotes may hold blanks."""
    found = re.findall(r'"((?:[^"]|"")*)"?|(\S+)', rest)
    return [plain or quoted.replace('""', '"') for quoted, plain in found]


_INLINE: Mapping[str, tuple[str, str]] = {
    "Fl": ("-", ""), "Ar": ("", ""), "Op": ("[", "]"), "Oo": ("[", ""), "Oc": ("]", ""),
    "Cm": ("", ""), "Ic": ("", ""), "Nm": ("", ""), "Xr": ("", ""), "Pa": ("", ""),
    "Ev": ("", ""), "Dv": ("", ""), "Em": ("", ""), "Sy": ("", ""), "Li": ("", ""),
    "Ql": ("'", "'"), "Dq": ("\u201c", "\u201d"), "Sq": ("\u2018", "\u2019"), "Qq": ('"', '"'),
    "Pq": ("(", ")"), "Bq": ("[", "]"), "Aq": ("<", ">"), "Brq": ("{", "}"), "No": ("", ""),
    "Lk": ("", ""), "Mt": ("", ""), "Va": ("", ""), "Vt": ("", ""),
    "Ft": ("", ""), "Fa": ("", ""), "Ux": ("UNIX", ""), "Ox": ("OpenBSD", ""),
    "Nx": ("NetBSD", ""), "Fx": ("FreeBSD", ""),
    "St": ("", ""), "An": ("", ""), "Ad": ("", ""), "Er": ("", ""), "Tn": ("", ""), "Dl": ("", ""),
    "D1": ("", ""), "Po": ("(", ""), "Pc": (")", ""), "Do": ("\u201c", ""), "Dc": ("\u201d", ""),
    "Fn": ("", ""), "Sx": ("", ""), "In": ("<", ">"), "Xo": ("", ""), "Xc": ("", ""),
    "Qo": ('"', ""), "Qc": ('"', ""), "So": ("\u2018", ""), "Sc": ("\u2019", ""),
    "Ao": ("<", ""), "Ac": (">", ""), "Bo": ("[", ""), "Bc": ("]", ""), "Bx": ("BSD", ""),
    "Cd": ("", ""), "Ms": ("", ""),
}  # fmt: skip
"""Macros of mdoc within a sentence: what stands before their words, and at the line's end."""

_NO_SPACE = "\0"


def _inline(line: str, plain: Callable[[str], str]) -> str:
    """Return a line of mdoc, whose macros may stand in each other."""
    parts: list[str] = []
    ends = ""
    words = _words(line)
    while words:
        word = words.pop(0)
        if word == "Fn":
            parts.append(_function(words, plain))
        elif word in ("Ns", "Ap", "Pf"):
            parts.append(_NO_SPACE if word != "Ap" else f"{_NO_SPACE}'{_NO_SPACE}")
        elif word in _INLINE:
            before, after = _INLINE[word]
            parts += [before, _NO_SPACE] if before else []
            ends = after + ends
        else:
            parts.append(plain(word))
    text = " ".join(each for each in parts if each) + ends
    text = re.sub(rf"\s*{_NO_SPACE}\s*", "", text)
    return re.sub(r"\s+([.,;:)\]?!])(?=\s|$)", r"\1", text)


def _function(words: list[str], plain: Callable[[str], str]) -> str:
    """Take a function's name and its arguments from the words, and return how it is called."""
    parts: list[str] = []
    while words and words[0] not in _INLINE and not re.fullmatch(r"[.,;:)\]?!]|Ns|Ap|Pf", words[0]):
        parts.append(plain(words.pop(0)))
    return f"{parts[0]}({', '.join(parts[1:])})" if parts else ""
