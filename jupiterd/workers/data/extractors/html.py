"""The text of a page, as Markdown, and what else the page tells: links, licence, its wishes.

Owns what is read out of HTML. trafilatura tells what of a page is its text; the words are those of
the page itself (`leaves`), for its own Markdown loses some. Doesn't know where it came from.
"""

import re
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, cast
from urllib.parse import urljoin

from jupiterd.workers.data.extract.encodings import decoded
from jupiterd.workers.data.extractors.element import Element
from jupiterd.workers.data.extractors.leaves import Leaves
from jupiterd.workers.data.extractors.markdown import text_of_page, written
from jupiterd.workers.data.extractors.raw_document import RawDocument
from jupiterd.workers.data.skips import SkipReason, UnreadableError

MAX_LINKS = 20_000
_MAX_URL_CHARS = 2048
_HEAD_BYTES = 4096
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
_LANGUAGE = re.compile(rb"<html[^>]{0,400}?\slang\s*=\s*[\"']?\s*([a-z]{2,3})", re.IGNORECASE)
_WISHES = frozenset({"noindex", "none", "noai"})

_CREATIVE_COMMONS = re.compile(
    r"^https?://(?:www\.)?creativecommons\.org/(licenses|publicdomain)/([a-z-]+)/(\d\.\d)"
)


def read(given: RawDocument) -> Mapping[str, Any]:
    """Return `text`, `links` and `license` of a page.

    Raises:
        UnreadableError: it is no page, has no text, or asks not to be taken.
    """
    from trafilatura import extract
    from trafilatura.utils import load_html

    url = given.url
    parsed = load_html(_decoded(given))
    if parsed is None:
        raise UnreadableError(SkipReason.BROKEN)
    tree = cast("Element", parsed)
    wishes = _wishes(tree)
    links = [] if wishes & {"nofollow", "none"} else _links(tree, url)
    fields = {"text": "", "links": links, "license": _license(tree)}
    if wishes & _WISHES:
        return {**fields, "reason": str(SkipReason.ROBOTS)}
    recognised = extract(deepcopy(parsed), url=url or None, include_comments=False)
    if not (recognised or "").strip():
        return {**fields, "reason": str(SkipReason.EMPTY)}
    text = written(text_of_page(Leaves.of(parsed), recognised or ""))
    return {**fields, "text": text or recognised}


def text_of_fragment(markup: str) -> str:
    """Return the text of a piece of HTML, such as a feed's description."""
    if "<" not in markup and "&" not in markup:
        return markup.strip()
    from trafilatura import html2txt

    return html2txt(f"<html><body>{markup}</body></html>").strip()


def spdx_of(address: str) -> str:
    """Return the SPDX id of a licence named by its address; empty where it isn't known."""
    found = _CREATIVE_COMMONS.match(address.strip())
    if found is None:
        return ""
    family, name, version = found.groups()
    if family == "publicdomain":
        return f"CC0-{version}" if name == "zero" else ""
    return f"CC-{name.upper()}-{version}"


def _decoded(given: RawDocument) -> str:
    """Believe its sender, or the page, where the bytes agree; its language is what it says."""
    head = given.data[:_HEAD_BYTES]
    stated, language = _CHARSET.search(head), _LANGUAGE.search(head)
    return decoded(
        given.data,
        given.charset or (stated.group(1).decode() if stated is not None else ""),
        language.group(1).decode().lower() if language is not None else given.language,
    )


def _strings(tree: Element, path: str) -> list[str]:
    return [str(found) for found in tree.xpath(path)]


def _wishes(tree: Element) -> set[str]:
    names = "translate(@name, 'ROBTS', 'robts') = 'robots'"
    contents = _strings(tree, f"//meta[{names}]/@content")
    return {wish.strip().lower() for content in contents for wish in content.split(",")}


def _links(tree: Element, url: str) -> list[str]:
    base = urljoin(url, next(iter(_strings(tree, "//base/@href")), ""))
    found: dict[str, None] = {}
    for href in _strings(tree, "//a[not(contains(@rel, 'nofollow'))]/@href"):
        link = _joined(base, href)
        if link:
            found[link] = None
        if len(found) >= MAX_LINKS:
            break
    return list(found)


def _joined(base: str, href: str) -> str:
    try:
        link = urljoin(base, href.strip())
    except ValueError:
        return ""
    return link if link.startswith(("http://", "https://")) and len(link) < _MAX_URL_CHARS else ""


def _license(tree: Element) -> str:
    stated = _strings(tree, "//link[@rel='license']/@href | //a[@rel='license']/@href")
    return next((found for address in stated if (found := spdx_of(address))), "")
