"""What a tree of HTML says, block by block: paragraphs, headings, items, code and tables.

Owns how inline marks are written and where a block begins and ends: every word of the tree is in
one block. Doesn't know which of them belong to the text of a page, or how blocks become a document.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

BLOCKS = frozenset(
    (  # noqa: SIM905 - one line otherwise for each
        "address article aside blockquote body center dd details div dl dt fieldset figcaption "
        "figure footer form h1 h2 h3 h4 h5 h6 header hr html li main nav ol p pre section summary "
        "table tbody td tfoot th thead tr ul"
    ).split()
)
HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
FRAME_TAGS = frozenset({"aside", "button", "dialog", "footer", "form", "menu", "nav"})
FRAME_NAMES = re.compile(
    r"\b(?:nav|navbar|navigation|menu|sidebar|footer|breadcrumbs?|share|social|related|comments?|"
    r"cookies?|banner|promo|advert\w*|subscribe|newsletter|pagination|skip-?link)\b",
    re.IGNORECASE,
)
"""Of classes and ids around what frames the text of a page."""

_UNSEEN = frozenset(
    {
        "script", "style", "noscript", "template", "svg", "iframe", "object", "canvas", "head",
        "select", "option", "input", "textarea", "audio", "video", "map", "button",
    }
)  # fmt: skip
_MARKS = {
    **dict.fromkeys(("code", "kbd", "samp", "tt"), "`"),
    **dict.fromkeys(("em", "i", "dfn", "var"), "*"),
    **dict.fromkeys(("strong", "b"), "**"),
}
_PERMALINKS = frozenset({"\u00b6", "#", "\u00a7", "\U0001f517", ""})
_SPACE = re.compile(r"[^\S\u00a0]+")
_DISPLAY_STYLE = re.compile(r"\{\\(?:displaystyle|textstyle)\s(.*)\}", re.DOTALL)
_LANGUAGE = re.compile(
    r"(?:language|lang|highlight|brush:?)[-\s](?!default\b|text\b)([\w+#-]{1,20})"
)


@dataclass(eq=False)
class BlockContainer:
    """What a block lies in: an item of a list, or a quotation."""

    marker: str
    """What its first line begins with, such as `- `."""
    rest: str
    """What its further lines begin with."""
    is_begun: bool = False


@dataclass(eq=False)
class TextLeaf:
    """One block."""

    element: Any
    text: str
    """As Markdown, without what it lies in."""
    items: tuple[BlockContainer, ...]
    is_framed: bool
    """Does it lie in what usually frames the text of a page?"""
    link_chars: int = 0
    is_code: bool = False
    is_term: bool = False
    """Of a list of definitions: what follows belongs to it."""


@dataclass
class Leaves:
    """Finds the blocks of one tree."""

    found: list[TextLeaf] = field(default_factory=list[TextLeaf])
    _pieces: list[str] = field(default_factory=list[str])
    _link_chars: int = 0
    _holders: set[Any] = field(default_factory=set[Any])
    _numbered: Counter[Any] = field(default_factory=Counter[Any])
    """Ordered list -> how many of its items were seen."""

    @classmethod
    def of(cls, tree: Any) -> list[TextLeaf]:  # noqa: ANN401 - lxml has no types
        """Return the blocks of a tree in their order."""
        leaves = cls()
        for block in tree.iter(*BLOCKS):
            parent = block.getparent()
            while parent is not None and parent not in leaves._holders:
                leaves._holders.add(parent)
                parent = parent.getparent()
        leaves._walk(tree, (), is_framed=False)
        return leaves.found

    def _walk(self, element: Any, items: tuple[BlockContainer, ...], *, is_framed: bool) -> None:  # noqa: ANN401
        tag = element.tag
        if not isinstance(tag, str) or tag in _UNSEEN or _is_hidden(element):
            return
        is_framed = is_framed or _is_frame(element)
        if tag == "pre":
            self._add(element, _fenced(element), items, is_framed=is_framed, is_code=True)
        elif tag == "table" and (rows := _rows_of(element)):
            self._add(element, "\n".join(rows), items, is_framed=is_framed, is_code=True)
        else:
            self._contents(element, self._inner(element, items), is_framed=is_framed)

    def _contents(
        self,
        element: Any,  # noqa: ANN401 - lxml has no types
        items: tuple[BlockContainer, ...],
        *,
        is_framed: bool,
    ) -> None:
        self._pieces.append(element.text or "")
        for child in element:
            if child in self._holders or child.tag in BLOCKS:
                self._flush(element, items, is_framed=is_framed)
                self._walk(child, items, is_framed=is_framed)
            else:
                self._pieces.append(self.inline(child))
            self._pieces.append(child.tail or "")
        self._flush(element, items, is_framed=is_framed)

    def _flush(self, element: Any, items: tuple[BlockContainer, ...], *, is_framed: bool) -> None:  # noqa: ANN401
        text = "".join(self._pieces)
        self._pieces.clear()
        links, self._link_chars = self._link_chars, 0
        if not text or text.isspace() or not (text := _lines(text)):
            return
        mark = HEADINGS.get(element.tag)
        text = f"{mark} {text.replace(chr(10), ' ')}" if mark else text
        self._add(element, text, items, is_framed=is_framed)
        self.found[-1].link_chars = links

    def _add(
        self,
        element: Any,  # noqa: ANN401
        text: str,
        items: tuple[BlockContainer, ...],
        *,
        is_framed: bool,
        is_code: bool = False,
    ) -> None:
        before = self.found[-1] if self.found else None
        if not text:
            return
        is_meaning = before is not None and before.is_term and before.items == items
        if before is not None and is_meaning and not is_code:
            joint = ", " if element.tag == "dt" else ": "
            before.text, before.is_term = f"{before.text}{joint}{text}", element.tag == "dt"
            return
        self.found.append(TextLeaf(element, text, items, is_framed, is_code=is_code))
        self.found[-1].is_term = element.tag == "dt"

    def inline(self, element: Any) -> str:  # noqa: ANN401
        """Return what an element says within a block."""
        tag = element.tag
        if not isinstance(tag, str) or tag in _UNSEEN or _is_hidden(element):
            return ""
        if tag == "br":
            return "\0"
        if tag == "math":
            return _formula(element)
        pieces = [element.text or ""]
        for child in element:
            pieces += (self.inline(child), child.tail or "")
        text = "".join(pieces)
        if tag == "a":
            if text.strip() in _PERMALINKS and str(element.get("href") or "#").startswith("#"):
                return ""
            self._link_chars += len(text)
        return _marked(text, _MARKS[tag]) if tag in _MARKS else text

    def _inner(self, element: Any, items: tuple[BlockContainer, ...]) -> tuple[BlockContainer, ...]:  # noqa: ANN401
        """Return what the contents of an element lie in."""
        tag = element.tag
        if tag == "blockquote":
            return (*items, BlockContainer("> ", "> "))
        if tag in {"dt", "dd"}:
            return _of_definition(tag, items, self.found[-1] if self.found else None)
        if tag != "li":
            return items
        parent = element.getparent()
        if parent is not None and parent.tag == "ol":
            self._numbered[parent] += 1
            marker = f"{self._numbered[parent]}. "
            return (*items, BlockContainer(marker, " " * len(marker)))
        return (*items, BlockContainer("- ", "  "))


def _formula(element: Any) -> str:  # noqa: ANN401
    """Return a formula as TeX where the page has it so, else its letters."""
    note = element.find(".//{*}annotation[@encoding='application/x-tex']")
    tex = str(element.get("alttext") or (note is not None and note.text) or "").strip()
    if not tex:
        return "".join(element.itertext())
    if found := _DISPLAY_STYLE.fullmatch(tex):  # as MediaWiki writes them
        tex = found[1].strip()
    tex = " ".join(tex.split())
    return f"$${tex}$$" if element.get("display") == "block" else f"${tex}$"


def _of_definition(
    tag: str, items: tuple[BlockContainer, ...], last: TextLeaf | None
) -> tuple[BlockContainer, ...]:
    """Return what a term or its meaning lies in, after the last block."""
    if tag == "dt":
        return (
            last.items
            if last is not None and last.is_term
            else (*items, BlockContainer("- ", "  "))
        )
    is_of_term = last is not None and len(last.items) > len(items)
    return last.items[: len(items) + 1] if last is not None and is_of_term else items


def _is_hidden(element: Any) -> bool:  # noqa: ANN401
    return element.get("hidden") is not None or element.get("aria-hidden") == "true"


def _is_frame(element: Any) -> bool:  # noqa: ANN401
    if element.tag in FRAME_TAGS or element.get("role") in {"navigation", "search", "banner"}:
        return True
    names = f"{element.get('class') or ''} {element.get('id') or ''}"
    is_named = len(names) > 1 and element.tag not in {"body", "html"}
    return is_named and FRAME_NAMES.search(names) is not None


def _lines(text: str) -> str:
    """Return inline text with its white space as a browser shows it."""
    if "\0" not in text and "\u00a0" not in text:
        return " ".join(text.split())
    lines = (_SPACE.sub(" ", line).strip() for line in text.split("\0"))
    return "\n".join(line for line in lines if line)


def _marked(text: str, mark: str) -> str:
    inner = text.strip()
    if not inner or mark in inner or "\0" in inner:
        return text
    start = text.index(inner[0])
    return f"{text[:start]}{mark}{inner}{mark}{text[start + len(inner) :]}"


def _fenced(element: Any) -> str:  # noqa: ANN401
    pieces = _verbatim(element)
    text = "".join(pieces).strip("\n").rstrip()
    if not text.strip():
        return ""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{_language_of(element)}\n{text}\n{fence}"


def _verbatim(element: Any) -> Iterator[str]:  # noqa: ANN401
    if element.tag == "br":
        yield "\n"
    elif isinstance(element.tag, str) and element.tag not in _UNSEEN:
        yield element.text or ""
        for child in element:
            yield from _verbatim(child)
            yield child.tail or ""


def _language_of(element: Any) -> str:  # noqa: ANN401
    around = [element, *element[:1], *list(element.iterancestors())[:2]]
    for each in around:
        if isinstance(each.tag, str) and (said := _LANGUAGE.search(each.get("class") or "")):
            return said.group(1).rstrip("0123456789").lower()
    return ""


def _rows_of(table: Any) -> list[str]:  # noqa: ANN401
    """Return the rows of a table of cells; none where it lays out blocks."""
    if table.find(".//table") is not None or table.find(".//pre") is not None:
        return []
    if any(True for _ in table.iter("ul", "ol", "dl", "h1", "h2", "h3", "h4")):
        return []
    rows = [[_cell(cell) for cell in row.iter("td", "th")] for row in table.iter("tr")]
    rows = [row for row in rows if any(row)]
    if not rows or max(map(len, rows)) < 2 or max(map(len, rows[0])) > 400:
        return []
    width = max(map(len, rows))
    lines = [f"| {' | '.join([*row, *[''] * (width - len(row))])} |" for row in rows]
    return [lines[0], f"|{' --- |' * width}", *lines[1:]]


def _cell(cell: Any) -> str:  # noqa: ANN401
    inner = Leaves()
    pieces = [cell.text or ""]
    for child in cell:
        pieces += (inner.inline(child), " " if child.tag in BLOCKS else "", child.tail or "")
    return _lines("".join(pieces)).replace("\n", " ").replace("|", "\\|")
