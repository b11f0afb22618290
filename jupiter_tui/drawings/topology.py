"""The picture of the cluster: who is joined to whom, by what, and how fast that is.

Pure. Owns the signs of the kinds of links. Doesn't know who measured them.
"""

from collections.abc import Mapping
from typing import Any

from jupiter_tui.drawings.primitives.lines import Cell, Line, Lines, Tone, fitted, line
from jupiter_tui.model.scene import Scene
from jupiter_tui.model.source import Source
from jupiterd.formats import bits_per_s, plain
from jupiterd.ids import short

LINKS = Source("links")

SIGNS: Mapping[str, tuple[str, Tone]] = {
    "loopback": ("═", Tone.NORMAL),
    "thunderbolt": ("═", Tone.GOOD),
    "ethernet": ("─", Tone.NORMAL),
    "wifi": ("~", Tone.WARN),
    "vpn": ("~", Tone.WARN),
}
UNKNOWN_SIGN = ("·", Tone.FAINT)

NAME_WIDTH, PICTURE_WIDTH, GAP = 14, 68, 2
SHORT_MS = 10.0
"""Milliseconds; shorter times have one decimal, so that none reads 0 ms."""

ALONE = "no link yet: this machine is alone"
MEASURE = "N/A is what nobody has measured; jupiterctl check links does"

Document = Mapping[str, Any]


def topology(scene: Scene, width: int, _height: int) -> Lines:
    """Return a line for each link, the slowest first, in as many columns as there is room for."""
    watched = scene.view.watched(LINKS.noun)
    links = sorted(watched.document.get("links") or (), key=_slowness)
    if not links:
        words = watched.trouble or (ALONE if watched.document else "nothing heard yet")
        return (line(plain(words), Tone.FAINT),)
    names = {str(each.get("id")): plain(each.get("name")) for each in _nodes(scene)}
    columns = max((width + GAP) // (PICTURE_WIDTH + GAP), 1)
    pictures = [_picture(link, names, min(width, PICTURE_WIDTH)) for link in links]
    rows = [pictures[at : at + columns] for at in range(0, len(pictures), columns)]
    is_measured = all(link.get("bits_per_s") for link in links)
    more = () if is_measured else (line(MEASURE, Tone.FAINT),)
    return (*map(_side_by_side, rows), *more)


def _nodes(scene: Scene) -> list[Document]:
    return list(scene.view.document.get("nodes") or ())


def _slowness(link: Document) -> tuple[float, list[str]]:
    return link.get("bits_per_s") or 0.0, list(link.get("nodes") or ())


def _picture(link: Document, names: Mapping[str, str], width: int) -> Line:
    """Return the two ends, and between them the link's kind, speed and round trip time."""
    ends = [names.get(end) or short(str(end)) for end in link.get("nodes") or ("", "")]
    sign, tone = SIGNS.get(str(link.get("kind")), UNKNOWN_SIGN)
    left, right = (Cell(fitted(end, NAME_WIDTH), Tone.STRONG) for end in ends[:2])
    room = max(width - 2 * NAME_WIDTH - 2, 1)
    words = f" {plain(link.get('kind'))} {_speed(link)} {_time(link)} "
    return left, Cell(f" {words.center(room, sign)[:room]} ", tone), right


def _speed(link: Document) -> str:
    return bits_per_s(link["bits_per_s"]) if link.get("bits_per_s") else "N/A"


def _time(link: Document) -> str:
    if not link.get("rtt_s"):
        return "N/A"
    rtt_ms = 1000 * link["rtt_s"]
    return f"{rtt_ms:.1f} ms" if rtt_ms < SHORT_MS else f"{rtt_ms:.0f} ms"


def _side_by_side(pictures: list[Line]) -> Line:
    first, *others = pictures
    return (*first, *(cell for other in others for cell in (Cell(" " * GAP), *other)))
