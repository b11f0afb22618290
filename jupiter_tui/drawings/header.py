"""The header of every screen: the cluster, its leader, and the state of the link to the daemon.

Pure. Owns what is left out in a narrow terminal; the state of the link never is.
"""

import math

from jupiter_tui.drawings.primitives.lines import Cell, Line, Lines, Tone, line, width_of
from jupiter_tui.drawings.primitives.thresholds import LINK_TONES
from jupiter_tui.model.scene import Scene
from jupiter_tui.model.view import WatchedDocument
from jupiterd.client.watch import Link
from jupiterd.formats import plain
from jupiterd.ids import short
from jupiterd.locations import CONTROL_SOCKET

GAP = "   "


def bar(scene: Scene, width: int, _height: int) -> Lines:
    """Return the header in one line of the width."""
    right = link_line(scene)
    left = list(_left(scene))
    while len(left) > 1 and width_of((*_joined(left), *right)) + len(GAP) > width:
        left.pop()
    joined = _joined(left)
    blanks = Cell(" " * max(width - width_of((*joined, *right)), 1))
    return ((*joined, blanks, *right),)


def link_line(scene: Scene) -> Line:
    """Return the state of the link, and the time of the data where it is old or paused."""
    view = scene.view
    tone = LINK_TONES[view.link]
    words = [str(view.link)]
    if view.link is Link.LOST:
        left_s = math.ceil(view.retry_at_s - scene.moment.now_s)
        words.append(f"retry in {left_s} s" if left_s > 0 else "trying again")
    if scene.is_paused:
        words.insert(0, "paused")
    if (view.is_old or scene.is_paused) and view.received_at is not None:
        words.append(f"as of {view.received_at.wall}")
    return (Cell(f"● {', '.join(words)}", tone),)


def banner(scene: Scene, _width: int, _height: int) -> Lines:
    """Return why there is no live data and what to do; nothing while there is."""
    view = scene.view
    if view.link is Link.LIVE:
        return _outdated(view.outdated)
    socket = scene.options.state_dir / CONTROL_SOCKET
    if view.link is Link.CONNECTING:
        return (line(f"connecting to {plain(socket)}", Tone.NOTE),)
    tone = LINK_TONES[view.link]
    if view.link is Link.STALE:
        return (line(f"{plain(view.reason)} from {plain(socket)}", tone),)
    hint = (line(f"hint: {plain(view.hint)}"),) if view.hint else ()
    return (line(plain(view.reason), tone), *hint)


def _outdated(watched: WatchedDocument | None) -> Lines:
    if watched is None:
        return ()
    since = f" as of {watched.received_at.wall}" if watched.received_at is not None else " old"
    return (line(f"part of this screen is{since}: {plain(watched.trouble)}", Tone.WARN),)


def _left(scene: Scene) -> tuple[Cell, ...]:
    """Return what the header shows of the cluster, the most important first."""
    name = Cell("Jupiter", Tone.STRONG)
    mode = (Cell("read-only", Tone.NOTE),) if scene.options.is_readonly else ()
    cluster = scene.view.document.get("cluster") or {}
    if not cluster:
        return (name, *mode)
    if not cluster.get("id"):
        return (name, Cell("no cluster yet", Tone.WARN), *mode)
    alive, total = cluster.get("nodes_alive"), cluster.get("nodes_total")
    is_whole = alive == total
    return (
        name,
        Cell(_label(cluster.get("name"), cluster["id"])),
        Cell(f"{alive}/{total} nodes alive", Tone.NORMAL if is_whole else Tone.WARN),
        _leader(scene, cluster.get("leader")),
        *mode,
        Cell(f"term {cluster.get('term')}", Tone.FAINT),
    )


def _label(name: object, identifier: str) -> str:
    return f"{plain(name)} ({short(identifier)})" if name else short(identifier)


def _leader(scene: Scene, leader: str | None) -> Cell:
    if not leader:
        return Cell("no leader", Tone.BAD)
    names = {node.get("id"): node.get("name") for node in scene.view.document.get("nodes", ())}
    return Cell(f"leader {plain(names.get(leader) or short(leader))}")


def _joined(cells: list[Cell]) -> Line:
    return tuple(Cell(GAP * (place > 0) + cell.text, cell.tone) for place, cell in enumerate(cells))
