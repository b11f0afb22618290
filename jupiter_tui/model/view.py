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
class WatchedDocument:
    """The last state of a document that a screen watches in addition to the status."""

    document: Document = field(default_factory=dict[str, Any])
    """The last one received; empty before the first."""
    trouble: str = ""
    """Why nothing newer arrives; empty where all is well."""
    received_at: Moment | None = None
    """When `document` arrived; None before the first."""


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
    received_at: Moment | None = None
    """When the daemon's last message about the status arrived."""
    curve: Curve = field(default_factory=Curve)
    others: Mapping[str, WatchedDocument] = field(default_factory=dict[str, WatchedDocument])
    """The documents that the screens in front listen to, by noun."""
    charted: Document = field(default_factory=dict[str, Any])
    """The last document of a curve that had points: the next round's has none for a while."""

    def watched(self, noun: str) -> WatchedDocument:
        """Return the last state of a document; an empty one before the first message."""
        return self.others.get(noun, WatchedDocument())

    @property
    def cycle(self) -> Mapping[str, Any]:
        """Return the document of what trains, or trained last; empty where there is none.

        A training run without the cycle has the same keys; whichever runs is shown.
        """
        cycle, train = self.document.get("cycle") or {}, self.document.get("train") or {}
        return train if train and (not cycle or _is_running(train)) else cycle

    @property
    def outdated(self) -> WatchedDocument | None:
        """Return a watched document that is shown and no longer updated; None where none is."""
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
    updated = replace(view, document=folded(view.document, message), received_at=at)
    # Most of what comes is of other things than the training.
    return updated if updated.cycle is view.cycle else replace(updated, curve=_curve(updated))


def fold_other(
    view: ViewModel, noun: str, message: WatchMessage, at: Moment | None = None
) -> ViewModel:
    """Return the view after a message about a document other than the status.

    The state of the link is taken from messages about the status alone.
    """
    known = view.watched(noun)
    if isinstance(message, LinkChanged):
        watched = replace(known, trouble=message.reason)
    else:
        watched = WatchedDocument(folded(known.document, message), received_at=at)
    has_points = bool((watched.document.get("curve") or {}).get("points"))
    charted = watched.document if has_points else view.charted
    return replace(view, others={**view.others, noun: watched}, charted=charted)


def forget_other(view: ViewModel, noun: str) -> ViewModel:
    """Return the view without a document that nobody looks at any more."""
    return replace(
        view, others={key: watched for key, watched in view.others.items() if key != noun}
    )


def with_link_of(view: ViewModel, current: ViewModel) -> ViewModel:
    """Return a paused view with the present state of the link."""
    # A document that first arrived during the pause is shown: nothing older exists.
    others = {noun: view.others.get(noun, watched) for noun, watched in current.others.items()}
    return replace(
        view,
        link=current.link,
        reason=current.reason,
        hint=current.hint,
        retry_at_s=current.retry_at_s,
        others=others,
    )


def _curve(view: ViewModel) -> Curve:
    """Return the curve with the step and loss of the training phase that runs, if there is one."""
    for row in view.cycle.get("phases", ()):
        loss = (row.get("values") or {}).get("loss")
        is_training = row.get("phase") == Phase.TRAIN and row.get("state") == "running"
        if is_training and loss is not None and math.isfinite(loss):
            point = Point(int(row["done"]), float(loss))
            return extended(view.curve, str(view.cycle.get("id")), int(row["round"]), point)
    return view.curve
