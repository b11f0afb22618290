"""Wiki text, as MediaWiki has it, as blocks.

Owns its syntax. Every line comes out as Markdown; templates and tables are no text and go.
"""

import html
import re
from collections.abc import Sequence
from dataclasses import replace

from jupiterd.cycle.text_rules.markup.blocks import Block, as_item, code, heading, paragraph

_MAX_NESTED = 40
"""Templates inside each other; what is deeper stays as it was written."""

_HEADING = re.compile(r"(={1,6})[ \t]*(.+?)[ \t]*\1[ \t]*$")
_ITEM = re.compile(r"([*#;:]+)[ \t]*(.*)$")
_TEMPLATE = re.compile(r"\{\{[^{}]{0,5000}\}\}")
_LEFT_OUT = re.compile(
    r"<!--.{0,4000}?-->|<ref\b[^<>]{0,300}/>"
    r"|<(ref|gallery|score|timeline|imagemap)\b[^<>]{0,300}>.{0,4000}?</\1>|__[A-Z]{3,20}__",
    re.DOTALL | re.IGNORECASE,
)
_CODE = re.compile(
    r"<(syntaxhighlight|source|pre)\b([^<>]{0,300})>(.{0,20000}?)</\1>", re.DOTALL | re.IGNORECASE
)
_FORMULA = re.compile(
    r"<(math|chem|ce)\b([^<>]{0,300})>(.{0,4000}?)</\1>", re.DOTALL | re.IGNORECASE
)
_LANGUAGE = re.compile(r"lang(?:uage)?[ \t]*=[ \t]*[\"']?([\w+#-]+)")
_SET_ASIDE = re.compile("\ue004(\\d+)\ue005")
_FORMULA_PLACEHOLDER = re.compile("\ue006(\\d+)\ue007")
_NAMESPACE = r"\[\[[ \t]*:?[^\[\]|:\n]{2,20}:[^\[\]|\n]{1,300}"
_FILE = re.compile(rf"{_NAMESPACE}\|[^\[\]\n]{{0,1000}}\]\]")
_CATEGORY = re.compile(rf"^[ \t]*{_NAMESPACE}\]\][ \t]*$", re.MULTILINE)
_LINK = re.compile(r"\[\[(?:[^\[\]|\n]{1,300}\|)?([^\[\]|\n]{1,300})\]\]")
_OUTSIDE = re.compile(r"\[(?:https?:|//)[^\s\[\]]{1,1000}(?:[ \t]+([^\[\]\n]{1,500}))?\]")
_QUOTES = (("'''''", "***"), ("'''", "**"), ("''", "*"))


def wiki_blocks(lines: Sequence[str]) -> list[Block]:
    """Return the blocks of a text's lines."""
    held: list[Block] = []
    formulas: list[str] = []

    def hold(found: re.Match[str]) -> str:
        language = _LANGUAGE.search(found[2])
        blocks = code(found[3].split("\n"), language[1] if language else "")
        held.extend(blocks)
        return f"\n\ue004{len(held) - 1}\ue005\n" if blocks else "\n"

    def hold_formula(found: re.Match[str]) -> str:
        formulas.append(_as_tex(found[1].lower(), found[3]))
        return f"\ue006{len(formulas) - 1}\ue007"

    text = _CODE.sub(hold, _LEFT_OUT.sub("", "\n".join(lines)))
    text = _FORMULA.sub(hold_formula, text)
    text = _CATEGORY.sub("", _FILE.sub("", _without_templates(text)))
    text = _without_tables(text)
    found: list[Block] = []
    for line in text.split("\n"):
        example = _SET_ASIDE.fullmatch(line.strip())
        is_held = example is not None and int(example[1]) < len(held)
        found += [held[int(example[1])]] if example and is_held else _line(line)
    return [_with_formulas(block, formulas) for block in found]


def _as_tex(tag: str, body: str) -> str:
    """Return a formula as Markdown has it; of chemistry, as the package mhchem has it."""
    tex = " ".join(body.split())
    return f"${tex}$" if tag == "math" else f"$\\ce{{{tex}}}$"


def _with_formulas(block: Block, formulas: Sequence[str]) -> Block:
    def formula(found: re.Match[str]) -> str:
        number = int(found[1])
        return formulas[number] if number < len(formulas) else ""

    return replace(
        block, lines=tuple(_FORMULA_PLACEHOLDER.sub(formula, line) for line in block.lines)
    )


def _without_templates(text: str) -> str:
    for _ in range(_MAX_NESTED):
        text, times = _TEMPLATE.subn("", text)
        if not times:
            break
    return text


def _without_tables(text: str) -> str:
    """Leave out what stands between `{|` and `|}`; a table that never ends is none."""
    remaining: list[str] = []
    table: list[str] = []
    for line in text.split("\n"):
        start = line.lstrip(" \t:")
        if table or start.startswith("{|"):
            table.append(line)
            if start.startswith("|}"):
                table.clear()
        else:
            remaining.append(line)
    return "\n".join([*remaining, *table])


def _line(line: str) -> list[Block]:
    """Return what one line is; each is a paragraph of its own in a wiki."""
    if title := _HEADING.match(line):
        return heading(_marks(title[2]), len(title[1]))
    if item := _ITEM.match(line):
        inside = paragraph([_marks(item[2])])
        marker = "1. " if item[1].endswith("#") else "- "
        return as_item(inside, "  " * min(len(item[1]) - 1, 8) + marker)
    return paragraph([_marks(line)])


def _marks(text: str) -> str:
    for theirs, ours in _QUOTES:
        text = text.replace(theirs, ours)
    text = _LINK.sub(r"\1", text)
    return html.unescape(_OUTSIDE.sub(lambda found: found[1] or "", text))
