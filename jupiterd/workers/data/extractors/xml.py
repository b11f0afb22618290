"""Sitemaps and feeds: XML that strangers wrote.

Owns how they are read: no entities, nothing fetched, no depth without end. Doesn't know what is
done with what they list.
"""

from collections.abc import Mapping
from typing import Any, cast

from jupiterd.workers.data.extractors.element import Element
from jupiterd.workers.data.extractors.html import spdx_of, text_of_fragment
from jupiterd.workers.data.extractors.raw_document import RawDocument
from jupiterd.workers.data.skips import SkipReason, UnreadableError

MAX_LISTED = 50_000
"""What one sitemap may list, by the protocol's own rule."""

_BODIES = ("content", "encoded", "summary", "description")
_DATES = ("updated", "pubDate", "date", "published")


def read_sitemap(given: RawDocument) -> Mapping[str, Any]:
    """Return the `pages` and the further `sitemaps` that it lists."""
    pages: list[str] = []
    sitemaps: list[str] = []
    for element in _root(given.data):
        place = next((child for child in element if _name(child) == "loc"), None)
        address = _text(place)
        if address and len(pages) + len(sitemaps) < MAX_LISTED:
            (sitemaps if _name(element) == "sitemap" else pages).append(address)
    return {"text": "", "pages": pages, "sitemaps": sitemaps}


def read_feed(given: RawDocument) -> Mapping[str, Any]:
    """Return the `entries` of an RSS or Atom feed, each {id, link, text, updated, license}."""
    found = (element for element in _root(given.data).iter() if _name(element) in {"item", "entry"})
    return {"text": "", "entries": [_entry(element) for element in found][:MAX_LISTED]}


def _entry(element: Element) -> dict[str, str]:
    link = _link(element, ("", "alternate"))
    parts = [_child(element, ("title",)), _child(element, _BODIES)]
    text = "\n\n".join(part for part in map(text_of_fragment, parts) if part)
    stated = _link(element, ("license",)) or _child(element, ("license",))
    return {
        "id": _child(element, ("id", "guid")) or link,
        "link": link,
        "text": text,
        "updated": _child(element, _DATES),
        "license": spdx_of(stated),
    }


def _link(element: Element, relations: tuple[str, ...]) -> str:
    for child in element:
        if _name(child) == "link" and str(child.get("rel") or "") in relations:
            return str(child.get("href") or _text(child))
    return ""


def _child(element: Element, names: tuple[str, ...]) -> str:
    """Return the text of the first child of the first name that has any."""
    for name in names:
        for child in element:
            if _name(child) == name and (text := _text(child)):
                return text
    return ""


def _name(element: Element) -> str:
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def _text(element: Element | None) -> str:
    return "" if element is None else "".join(element.itertext()).strip()


def _root(data: bytes) -> Element:
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - it has no types

    parser = etree.XMLParser(resolve_entities=False, no_network=True, recover=True)
    try:
        root = cast("Element | None", etree.fromstring(data.strip(), parser))
    except (etree.XMLSyntaxError, ValueError) as error:
        raise UnreadableError(SkipReason.BROKEN) from error
    if root is None:
        raise UnreadableError(SkipReason.BROKEN)
    return root
