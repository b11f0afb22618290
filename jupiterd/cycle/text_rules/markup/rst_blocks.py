"""reStructuredText as blocks, with the directives that documentation generators add.

Owns its syntax between lines, and `rst_marks` that inside a line. Every line comes out as Markdown.
"""

import re
from collections.abc import Sequence

from jupiterd.cycle.text_rules.markup.blocks import (
    MAX_DEPTH,
    Block,
    BlockKind,
    Found,
    as_item,
    blocks_between,
    code,
    common_indent,
    heading,
    indent_of,
    indented_below,
    paragraph,
)
from jupiterd.cycle.text_rules.markup.rst_marks import as_markdown

_UNDERLINE = re.compile(r"([=\-`:.'\"~^_*+#<>])\1{2,}[ \t]*$")
_DIRECTIVE = re.compile(r"\.\. (?:\|[^|\n]{1,100}\| )?([\w:+.-]+)::(?:[ \t]+(.*))?$")
_OPTION = re.compile(r":[\w -]+:(?:[ \t]|$)")
_FIELD = re.compile(r":([^:\n`]{1,100}):[ \t]*(.*)$")
_ITEM = re.compile(
    r"([-*+\u2022]|(?:\d{1,4}|#|[A-Za-z])[.)]|\((?:\d{1,4}|#|[A-Za-z])\))[ \t]+(?=\S)"
)
_TABLE = re.compile(r"(?:\+[-=+]+\+|={2,}(?:[ \t]+={2,})+)[ \t]*$")
_LEFT_OUT = frozenset(
    (  # noqa: SIM905 - a long tuple otherwise
        "contents toctree include literalinclude image index raw meta highlight module "
        "currentmodule py:module py:currentmodule default-domain default-role role rst-class class "
        "sectnum header footer target-notes unicode date replace csv-table table list-table "
        "tabularcolumns graphviz digraph graph plot mermaid autosummary bibliography sectionauthor "
        "moduleauthor codeauthor cssclass video youtube testsetup testcleanup testoutput"
    ).split()
)
"""What names other files, or holds no sentences."""

_EXAMPLES = frozenset(
    (  # noqa: SIM905 - a long tuple otherwise
        "code code-block sourcecode parsed-literal doctest testcode ipython prompt productionlist "
        "math code-cell jupyter-execute literal"
    ).split()
)
_LANGUAGE_OF = {"doctest": "python", "testcode": "python", "ipython": "python", "math": "math"}
_VERSIONS = re.compile(r"^(?:v?\d[\w.]*[ \t,]*)+|^\S+$")
_SIGNED = re.compile(
    r"(?:[\w]+:)?(?:function|method|class|exception|attribute|data|module|staticmethod|option"
    r"|classmethod|decorator|property|type|macro|member|var|struct|enum|enumerator|envvar|program"
    r"|cmdoption|opcode|describe|confval|command|variable|directive|role|object|pdbcommand|term)$"
)
"""What describes an object: its argument is a name, which is the subject of what follows."""


def rst_blocks(lines: Sequence[str], depth: int = 0) -> list[Block]:
    """Return the blocks of a text's lines."""
    return _Reader(lines, depth, []).blocks()


class _Reader:
    """Goes through lines; marks of headings rank in the order in which they first come."""

    def __init__(self, lines: Sequence[str], depth: int, ranks: list[str]) -> None:
        self._lines = lines
        self._depth = depth
        self._ranks = ranks

    def blocks(self) -> list[Block]:
        if self._depth > MAX_DEPTH:
            return paragraph([as_markdown(line) for line in self._lines])
        return blocks_between(self._lines, self._next)

    def _inside(self, lines: Sequence[str]) -> list[Block]:
        indent = common_indent(lines)
        body = [line[indent:] if line.strip() else "" for line in lines]
        return _Reader(body, self._depth + 1, self._ranks).blocks()

    def _next(self, at: int) -> Found:
        line = self._lines[at]
        text = line.strip()
        if text.startswith("..") and (text == ".." or text[2:3] == " "):
            return self._marked(at, text)
        if text.startswith("__ "):
            return [], at + 1
        if text.startswith(">>> "):
            return self._session(at)
        if _TABLE.match(text):
            return [], self._end_of_table(at)
        return self._heading(at) or self._list(at, text) or self._paragraph(at)

    def _marked(self, at: int, text: str) -> Found:
        """Read what begins with two dots: a directive, a target, a footnote or a comment."""
        own = indent_of(self._lines[at])
        end = max(at + 1, indented_below(self._lines, at + 1, own + 1))
        body = self._lines[at + 1 : end]
        if directive := _DIRECTIVE.match(text):
            return self._directive(directive[1].lower(), directive[2] or "", body), end
        if note := re.match(r"\.\. \[[^\]\n]{1,80}\][ \t]*(.*)$", text):
            return self._inside([note[1], *(one.strip() for one in body)]), end
        return [], end

    def _directive(self, name: str, argument: str, body: Sequence[str]) -> list[Block]:
        content = _without_options(body)
        if name in _LEFT_OUT or name.startswith("auto"):
            return []
        if name in _EXAMPLES:
            first = argument.split(maxsplit=1)[0].lower() if argument and name != "math" else ""
            lines = [argument, *content] if name == "math" and argument else content
            return code(lines, first or _LANGUAGE_OF.get(name, ""))
        if name in (
            "figure",
            "rubric",
            "admonition",
            "topic",
            "sidebar",
            "card",
            "tab-item",
            "tab",
        ):
            title = (
                [] if name in ("figure", "tab", "tab-item") else paragraph([as_markdown(argument)])
            )
            return [*title, *self._inside(content)]
        if _SIGNED.match(name):
            more = _more_names(body)
            quoted = [f"`{one.strip()}`" for one in (argument, *more) if one.strip()]
            content = _without_options(body[len(more) :])
            return [*paragraph([f"{', '.join(quoted)}:"] if quoted else []), *self._inside(content)]
        if name.startswith(("version", "deprecated")):
            rest = _VERSIONS.sub("", argument).strip()
            return self._inside([rest, *content] if rest else content)
        return self._inside(
            [argument, *content] if argument and not _is_name(argument) else content
        )

    def _session(self, at: int) -> Found:
        end = at
        while end < len(self._lines) and self._lines[end].strip():
            end += 1
        return code(self._lines[at:end], "python"), end

    def _end_of_table(self, at: int) -> int:
        """Return where a grid ends with a blank line, or a simple table with its last rule."""
        is_grid = self._lines[at].strip().startswith("+")
        end = at + 1
        while end < len(self._lines):
            text = self._lines[end].strip()
            if not text:
                before = self._lines[end - 1].strip()
                rules = sum(bool(_TABLE.match(one.strip())) for one in self._lines[at:end])
                if is_grid or (_TABLE.match(before) and rules > 2) or end - at > 400:
                    return end
            end += 1
        return end

    def _heading(self, at: int) -> Found | None:
        line = self._lines[at]
        below = self._lines[at + 1].rstrip() if at + 1 < len(self._lines) else ""
        over = _UNDERLINE.match(line.strip())
        if over and at + 2 < len(self._lines) and below.strip():
            under = self._lines[at + 2].strip()
            if under[:1] == over[1] and _UNDERLINE.match(under):
                return self._ranked(below.strip(), over[1] * 2, at + 3)
        if over:
            return [], at + 1
        under_text = _UNDERLINE.match(below)
        if under_text and len(below) >= min(len(line.strip()), 4) and indent_of(line) == 0:
            return self._ranked(line.strip(), under_text[1], at + 2)
        return None

    def _ranked(self, text: str, mark: str, at: int) -> Found:
        if mark not in self._ranks:
            self._ranks.append(mark)
        return heading(as_markdown(text), min(6, self._ranks.index(mark) + 1)), at

    def _list(self, at: int, text: str) -> Found | None:
        if field := _FIELD.match(text):
            end = max(at + 1, indented_below(self._lines, at + 1, indent_of(self._lines[at]) + 1))
            name = field[1].split()[-1] if " " in field[1] else field[1]
            body = [f"``{name}``: {field[2]}", *(one.strip() for one in self._lines[at + 1 : end])]
            return (as_item(self._inside(body), "- ") if field[2] else []), end
        item = _ITEM.match(text)
        if not item:
            return None
        own = indent_of(self._lines[at])
        end = max(at + 1, indented_below(self._lines, at + 1, own + 1))
        width = own + item.end()
        body = [
            text[item.end() :],
            *(one[min(width, indent_of(one)) :] for one in self._lines[at + 1 : end]),
        ]
        number = re.match(r"\(?(\d+)", item[1])
        return as_item(self._inside(body), f"{number[1]}. " if number else "- "), end

    def _paragraph(self, at: int) -> Found:
        own = indent_of(self._lines[at])
        end = at + 1
        while (
            end < len(self._lines)
            and self._lines[end].strip()
            and indent_of(self._lines[end]) == own
        ):
            end += 1
        text = [one.strip() for one in self._lines[at:end]]
        below = max(end, indented_below(self._lines, end, own + 1))
        if text[-1].endswith("::"):
            intro = [*text[:-1], text[-1].removesuffix("::").rstrip()]
            intro[-1] += ":" if intro[-1] else ""
            return [*_read(intro), *code(self._lines[end:below])], below
        is_term = end < len(self._lines) and self._lines[end].strip() and below > end
        if is_term and end - at == 1:
            return [*_read(text), *self._inside(self._lines[end:below])], below
        if own and self._depth == 0:
            return self._inside(
                self._lines[at : max(end, indented_below(self._lines, at, 1))]
            ), max(end, indented_below(self._lines, at, 1))
        return _read(text), end


def _read(lines: Sequence[str]) -> list[Block]:
    """Return a paragraph; marks may begin on one line and end on the next."""
    joined = as_markdown(" ".join(line.removeprefix("| ") for line in lines))
    return [Block(BlockKind.PARAGRAPH, (joined,))] if joined.strip() else []


def _without_options(body: Sequence[str]) -> list[str]:
    at = 0
    while at < len(body) and body[at].strip() and _OPTION.match(body[at].strip()):
        at += 1
    return list(body[at:])


def _more_names(body: Sequence[str]) -> list[str]:
    """Return further signatures, which stand directly below the first."""
    found: list[str] = []
    for line in body:
        text = line.strip()
        if not text or _OPTION.match(text) or "(" not in text:
            break
        found.append(text)
    return found


def _is_name(argument: str) -> bool:
    return " " not in argument.strip()
