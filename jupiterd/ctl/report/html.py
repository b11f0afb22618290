"""HTML as text: elements, and escaped untrusted text.

Owns the escaping: everything in a page is escaped by `text` or made by `element`.
"""

from collections.abc import Iterable, Sequence
from html import escape
from unicodedata import category


class Html(str):
    """A piece of a page that is already escaped."""

    __slots__ = ()


def text(value: object) -> Html:
    """Return an untrusted text, escaped and without control characters."""
    shown = "".join(
        char if char.isprintable() or _is_space(char) else "\ufffd" for char in str(value)
    )
    return Html(escape(shown, quote=True))


def _is_space(char: str) -> bool:
    return char in "\n\t" or category(char) == "Zs"


def element(name: str, *content: object, **attributes: object) -> Html:
    """Return an element; underscores in attribute names become hyphens."""
    inner = "".join(each if isinstance(each, Html) else text(each) for each in content)
    said = "".join(
        f' {key.strip("_").replace("_", "-")}="{text(value)}"' for key, value in attributes.items()
    )
    return Html(f"<{name}{said}>{inner}</{name}>")


def joined(parts: Iterable[object], between: str = "") -> Html:
    """Return the pieces, joined."""
    return Html(between.join(each if isinstance(each, Html) else text(each) for each in parts))


def table(headers: Sequence[object], rows: Sequence[Sequence[object]]) -> Html:
    """Return a table; `None.` if there are no rows."""
    if not rows:
        return element("p", "None.", class_="nothing")
    head = element("tr", *(element("th", each) for each in headers))
    body = [element("tr", *(element("td", each) for each in row)) for row in rows]
    return element("div", element("table", element("thead", head), element("tbody", *body)),
                   class_="wide")  # fmt: skip


def section(title: str, *content: object) -> Html:
    """Return a section of the page with its heading."""
    return element("section", element("h2", title), *content)


def folded(title: object, *content: object) -> Html:
    """Return content that a click on its title shows."""
    return element("details", element("summary", title), *content)
