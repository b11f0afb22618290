"""Documents as a daemon makes them: a cluster of three in its second round."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jupiter_tui.drawings.primitives.lines import Lines
from jupiter_tui.drawings.primitives.listing import Choice, ListDrawing
from jupiter_tui.model.clock import Moment
from jupiter_tui.model.scene import Options, Scene
from jupiter_tui.model.view import ViewModel, fold, fold_other
from jupiterd.client.watch import Delta, Link, LinkChanged, Snapshot, WatchMessage

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "recorded.json").read_text())
"""A status document of `make demo`, as it came, in the middle of the second round's training."""

NOON = Moment(100.0, "12:03:41")
STATE_DIR = Path("/state")

Document = dict[str, Any]


def status(**changed: Any) -> Document:
    """Return the recorded document with other top-level keys."""
    return RECORDED | changed


def cycle(**changed: Any) -> Document:
    """Return the recorded cycle with other keys."""
    return RECORDED["cycle"] | changed


def trained(step: int, loss: float, *, round_number: int = 2) -> Delta:
    """Return the change that one look at a running training brings."""
    phases = [
        row | {"state": "running", "done": step, "values": {"loss": loss, "tokens_per_s": 4000.0}}
        if (row["round"], row["phase"]) == (round_number, "train")
        else row
        for row in RECORDED["cycle"]["phases"]
    ]
    changed = cycle(round=round_number, step=step, loss=loss, phases=phases)
    return Delta({"cycle": changed})


def messages(points: int = 120) -> list[WatchMessage]:
    """Return a stream from the first word on: a document, then a loss that falls."""
    falling = [trained(4 * k, 2 + 6 / (1 + k / 9) + 0.2 * ((k * 7) % 5)) for k in range(points)]
    return [LinkChanged(Link.LIVE), Snapshot(RECORDED), *falling]


def scene(
    *told: WatchMessage,
    at: Moment = NOON,
    others: Mapping[str, WatchMessage] | None = None,
    **options: Any,
) -> Scene:
    """Return the scene after these messages, all of one moment; `others` are of other nouns."""
    view = ViewModel()
    for noun, message in (others or {}).items():
        view = fold_other(view, noun, message)
    for message in told:
        view = fold(view, message, at)
    return Scene(view, at, Options(STATE_DIR, **options))


def of(document: Document) -> Scene:
    """Return the scene of a live document."""
    return scene(LinkChanged(Link.LIVE), Snapshot(document))


def all_lines(drawing: ListDrawing, **choice: Any) -> Callable[[Scene, int, int], Lines]:
    """Return a list's drawing as one of lines, each row among them."""

    def lines(shown: Scene, width: int, _height: int) -> Lines:
        listing = drawing(shown, Choice(**choice), width)
        return (*listing.head, *(row.line for row in listing.rows), *listing.foot)

    return lines
