"""Marks inside a line of Markdown: links, images, emphasis, tags, template tags and code.

Owns taking them out, in two steps: what is trained on loses what leads elsewhere, and what rules
judge loses every mark. Doesn't know blocks.
"""

import html
import re

from jupiterd.cycle.text_rules.formulas import with_formulas_set_aside, with_words_for_formulas

_CODE = re.compile(r"(?<!`)(`+)(?!`)(.{1,5000}?)(?<!`)\1(?!`)", re.DOTALL)
_SET_ASIDE = re.compile("\ue000(\\d+)\ue001")
_PRIVATE = re.compile("[\ue000\ue001]")

_INSIDE = r"[^\[\]\n]{0,500}"
_TITLE = r"(?:[ \t]+(?:\"[^\"\n]{0,300}\"|'[^'\n]{0,300}'))?"
_TARGET = rf"\((?:[^()\s]|\([^()\s]{{0,200}}\)){{0,2000}}{_TITLE}[ \t]*\)"
_IMAGE = re.compile(rf"!\[{_INSIDE}\](?:{_TARGET}|\[{_INSIDE}\])(?:\{{[^{{}}\n]{{0,200}}\}})?")
_LINK = re.compile(rf"\[({_INSIDE})\](?:{_TARGET}|[ ]?\[{_INSIDE}\])(?:\{{[^{{}}\n]{{0,200}}\}})?")
_WIKI_LINK = re.compile(r"\[\[(?:[^\[\]|\n]{1,200}\|)?([^\[\]|\n]{1,200})\]\]")
_FOOTNOTE = re.compile(r"\[\^[^\]\s]{1,60}\](:[ \t])?")
_SHORTCUT = re.compile(r"\[([^\[\]\n]{1,300})\](?![(\[:])")
_BOX = re.compile(r"^\[[ xX]\][ \t]+")
_ADDRESS = re.compile(
    r"<(?:[a-z][a-z0-9+.-]{1,20}:[^\s<>]{1,2000}|[^\s<>@]{1,100}@[^\s<>@]{1,100})>", re.IGNORECASE
)
_LEFT_OUT = re.compile(
    r"<(script|style|svg|iframe)\b.{0,2000}?</\1[ \t]*>|<!--.{0,2000}?-->",
    re.IGNORECASE | re.DOTALL,
)
_CODE_TAG = re.compile(
    r"<(code|kbd|samp|tt)\b[^<>]{0,200}>([^`]{1,500}?)</\1>", re.IGNORECASE | re.DOTALL
)
_BREAK = re.compile(r"<br[ \t]*/?>", re.IGNORECASE)
_TAG = re.compile(r"</?[A-Za-z][\w.:-]*(?:[ \t\n][^<>]{0,2000})?/?>|<>|</>")
_ATTRIBUTES = re.compile(
    r"(?<![ \t])[ \t]*\{[ \t]*+:?[ \t]*+[#.][^{}\n]{0,200}\}|\{:[^{}\n]{0,200}\}"
)
_TEMPLATE = re.compile(
    r"\{\{[^{}\n]{0,300}\}\}|\{%[^\n]{0,300}?%\}|\{\*[^\n]{0,300}?\*\}|\{/\*.{0,500}?\*/\}"
)
_SHORTCODE = re.compile(r"(?<!\w):[a-z][\w+-]{1,40}:(?!\w)")
_SPACES = re.compile(r"[ \t]{2,}")
_EMPTY_BRACKETS = re.compile(r"(?<![ \t])[ \t]*(?:\([ \t,;]*\)|\[[ \t]*\])")

_STRONG = re.compile(r"(?<!\\)(\*{1,3}|~~|==)(?=\S)([^\n]{1,2000}?)(?<=[^\s\\])\1")
_UNDERSCORES = re.compile(r"(?<![\w\\])(_{1,3})(?=\S)([^\n]{1,2000}?)(?<=\S)\1(?!\w)")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_PLACEHOLDER = re.compile(r"\{([^{}\n]{0,80})\}")
_NOT_NAMED = re.compile(r"[^\w\s.,'-]+")


def linked(text: str) -> tuple[int, int]:
    """Return how many letters of a line are link text, and how many it has in all."""
    bare = _IMAGE.sub("", text)
    inside = sum(_letters(found[1]) for found in _LINK.finditer(bare))
    inside += sum(_letters(found[1]) for found in _WIKI_LINK.finditer(bare))
    return inside, _letters(without_links(bare))


def _letters(text: str) -> int:
    return sum(map(str.isalnum, text))


def without_links(text: str, defined: frozenset[str] = frozenset()) -> str:
    """Return the line as it is trained on: without targets, images, tags and what fills it in.

    Args:
        text: the line; its code stays as it is.
        defined: names of the link targets that the document defines, in lower case.
    """
    if not _has_marks(text):
        return text
    set_aside: list[str] = []

    def hold(match: re.Match[str]) -> str:
        set_aside.append(match[0])
        return f"\ue000{len(set_aside) - 1}\ue001"

    text = with_formulas_set_aside(_CODE.sub(hold, _PRIVATE.sub("", text)), set_aside)
    text = _CODE_TAG.sub(lambda found: hold_tag(found, set_aside), text)
    text = _LEFT_OUT.sub("", text)
    text = _BOX.sub("", text)
    text = _links(text, defined)
    text = _TAG.sub("", _BREAK.sub(" ", text))
    text = _TEMPLATE.sub("", _ATTRIBUTES.sub("", text))
    text = _EMPTY_BRACKETS.sub("", text) if "(" in text or "[" in text else text
    text = _SPACES.sub(" ", _SHORTCODE.sub("", text)).strip()
    return _SET_ASIDE.sub(lambda found: set_aside[int(found[1])], text)


def hold_tag(found: re.Match[str], set_aside: list[str]) -> str:
    """Turn `<code>` into a mark of Markdown."""
    set_aside.append(f"`{html.unescape(_TAG.sub('', found[2])).strip()}`")
    return f"\ue000{len(set_aside) - 1}\ue001"


def _links(text: str, defined: frozenset[str]) -> str:
    if "[" in text:
        text = _FOOTNOTE.sub("", _IMAGE.sub("", text))
        text = _WIKI_LINK.sub(r"\1", text)
        text = _LINK.sub(r"\1", _LINK.sub(r"\1", text))
        if defined:
            text = _SHORTCUT.sub(
                lambda found: found[1] if found[1].lower() in defined else found[0], text
            )
    return _ADDRESS.sub("", text) if "<" in text else text


def _has_marks(text: str) -> bool:
    return any(map(text.__contains__, "[<{:"))


def without_marks(text: str) -> str:
    """Return the line as rules about prose judge it: its words and their punctuation alone."""
    text = with_words_for_formulas(_CODE.sub(lambda found: _words_of(found[2]), text))
    for _ in range(2):
        text = _STRONG.sub(r"\2", text)
    text = _UNDERSCORES.sub(r"\2", text)
    text = _PLACEHOLDER.sub(r"\1", _ESCAPED.sub(r"\1", html.unescape(text)))
    return _SPACES.sub(" ", text).strip()


def is_code_alone(text: str) -> bool:
    """Say whether a line is nothing but code, such as the signature above a description."""
    return text.startswith(("`", "**`")) and not any(map(str.isalpha, _CODE.sub("", text)))


def _words_of(name: str) -> str:
    """Return what is read of code in a sentence: names and numbers."""
    return _NOT_NAMED.sub(" ", name).strip()
