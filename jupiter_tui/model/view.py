"""What the dashboard knows: the daemon's last document, the link to it, and the loss so far.

Pure: messages of the watch stream come in with the moment at which they came. Owns the folding.
Doesn't know how anything is shown.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from jupiter_tui.model.clock import Moment
from jupiter_tui.model.curve import Curve, Point, extended
from jupiterd.client.channel import Document
from jupiterd.client.watch import Link, LinkChanged, WatchMessage, folded
from jupiterd.cycle.base.work_item import Phase


@dataclass(frozen=True)
class Told:
    """What is known of one document beside the status."""

    document: Document = field(default_factory=dict[str, Any])
    """As it came last; empty before that."""
    trouble: str = ""
    """Why there is nothing newer."""
    heard_at: Moment | None = None
    """When that came."""


@dataclass(frozen=True)
class ViewModel:
    """Everything the screens are drawn from."""

    document: Document = field(default_factory=dict[str, Any])
    """The last status document; empty before the first one."""
    link: Link = Link.CONNECTING
    reason: str = ""
    """Why the link isn't live."""
    hint: str = ""
    """What to do about it; empty where nobody knows."""
    retry_at_s: float = 0.0
    """With LOST: when the next try comes, on the clock of moments."""
    heard_at: Moment | None = None
    """When the daemon last said anything."""
    curve: Curve = field(default_factory=Curve)
    others: Mapping[str, Told] = field(default_factory=dict[str, Told])
    """The documents that the screens in front listen to, by noun."""
    charted: Document = field(default_factory=dict[str, Any])
    """The last document of a curve that had points: the next round's has none for a while."""

    def told(self, noun: str) -> Told:
        """Return what is known of a document; nothing before it first came."""
        return self.others.get(noun, Told())

    @property
    def cycle(self) -> Mapping[str, Any]:
        """Return the document of what trains, or trained last; empty where there is none.

        A training run without the cycle has the same keys; whichever runs is shown.
        """
        cycle, train = self.document.get("cycle") or {}, self.document.get("train") or {}
        return train if train and (not cycle or _is_running(train)) else cycle

    @property
    def left_behind(self) -> Told | None:
        """Return a document beside the status of which only an old state is shown, if any is."""
        return next((each for each in self.others.values() if each.trouble and each.document), None)

    @property
    def is_old(self) -> bool:
        """Say whether what is known may no longer hold."""
        is_news = self.link is Link.LIVE or (self.link is Link.CONNECTING and not self.document)
        return not is_news


def _is_running(document: Mapping[str, Any]) -> bool:
    return document.get("state") in ("running", "waiting")


def fold(view: ViewModel, message: WatchMessage, at: Moment) -> ViewModel:
    """Return the view as it is after a message that came at a moment."""
    if isinstance(message, LinkChanged):
        return replace(
            view,
            link=message.link,
            reason=message.reason,
            hint=message.hint,
            retry_at_s=at.now_s + message.retry_in_s,
        )
    heard = replace(view, document=folded(view.document, message), heard_at=at)
    # Most of what comes is of other things than the training.
    return heard if heard.cycle is view.cycle else replace(heard, curve=_curve(heard))


def fold_other(
    view: ViewModel, noun: str, message: WatchMessage, at: Moment | None = None
) -> ViewModel:
    """Return the view after a message about another document; the status alone tells the link."""
    known = view.told(noun)
    if isinstance(message, LinkChanged):
        told = replace(known, trouble=message.reason)
    else:
        told = Told(folded(known.document, message), heard_at=at)
    has_points = bool((told.document.get("curve") or {}).get("points"))
    charted = told.document if has_points else view.charted
    return replace(view, others={**view.others, noun: told}, charted=charted)


def forget_other(view: ViewModel, noun: str) -> ViewModel:
    """Return the view without a document that nobody looks at any more."""
    return replace(view, others={key: told for key, told in view.others.items() if key != noun})


def with_link_of(view: ViewModel, current: ViewModel) -> ViewModel:
    """Return a view that was held back, with the link as it is now."""
    # What came first after the picture was held is better than nothing.
    others = {noun: view.others.get(noun, told) for noun, told in current.others.items()}
    return replace(
        view,
        link=current.link,
        reason=current.reason,
        hint=current.hint,
        retry_at_s=current.retry_at_s,
        others=others,
    )


def _curve(view: ViewModel) -> Curve:
    """Return the curve with what the running training says of itself, if it says anything."""
    for row in view.cycle.get("phases", ()):
        loss = (row.get("values") or {}).get("loss")
        is_training = row.get("phase") == Phase.TRAIN and row.get("state") == "running"
        if is_training and loss is not None and math.isfinite(loss):
            point = Point(int(row["done"]), float(loss))
            return extended(view.curve, str(view.cycle.get("id")), int(row["round"]), point)
    return view.curve
