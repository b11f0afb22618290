"""HTML as text: elements, and text of others that can't become anything but text.

Owns the escaping. Whatever is put into a page passes `text`, or is made by `element`.
"""

from collections.abc import Iterable, Sequence
from html import escape
from unicodedata import category


class Html(str):
    """A piece of a page; everything else is text that is escaped first."""

    __slots__ = ()


def text(value: object) -> Html:
    """Return what others wrote, as it is to be read: nothing in it is an element or a control."""
    shown = "".join(
        char if char.isprintable() or _is_space(char) else "\ufffd" for char in str(value)
    )
    return Html(escape(shown, quote=True))


def _is_space(char: str) -> bool:
    return char in "\n\t" or category(char) == "Zs"


def element(name: str, *content: object, **attributes: object) -> Html:
    """Return an element; underscores in the names of attributes stand for hyphens."""
    inner = "".join(each if isinstance(each, Html) else text(each) for each in content)
    said = "".join(
        f' {key.strip("_").replace("_", "-")}="{text(value)}"' for key, value in attributes.items()
    )
    return Html(f"<{name}{said}>{inner}</{name}>")


def joined(parts: Iterable[object], between: str = "") -> Html:
    """Return pieces one after the other."""
    return Html(between.join(each if isinstance(each, Html) else text(each) for each in parts))


def table(headers: Sequence[object], rows: Sequence[Sequence[object]]) -> Html:
    """Return a table; numbers stand at the right by the style of the page."""
    if not rows:
        return element("p", "None.", class_="nothing")
    head = element("tr", *(element("th", each) for each in headers))
    body = [element("tr", *(element("td", each) for each in row)) for row in rows]
    return element("div", element("table", element("thead", head), element("tbody", *body)),
                   class_="wide")  # fmt: skip


def section(title: str, *content: object) -> Html:
    """Return a part of the page under its heading."""
    return element("section", element("h2", title), *content)


def folded(title: object, *content: object) -> Html:
    """Return content that is shown once somebody clicks on its title."""
    return element("details", element("summary", title), *content)
