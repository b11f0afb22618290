"""Who sends the alerts of a cluster, and which were sent already.

Owns that each is sent once, whoever leads, and its end only after it. Pure. Doesn't know how
anything is sent.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final, cast

from blake3 import blake3

from jupiterd.cluster.health.alerts import Alert
from jupiterd.cluster.text.health_words import NEWS
from jupiterd.cluster.values.severity import Severity, rank
from jupiterd.ids import NodeId

MARK_DIGITS: Final = 8
MAX_MARKS: Final = 16
"""Marks that travel with every heartbeat."""

HAS_WEBHOOK, SENT = "webhook", "sent"


def sender_among(leader: NodeId | None, able: AbstractSet[NodeId]) -> NodeId | None:
    """Return who sends: the leader, or where that has no webhook the first who has one."""
    return leader if leader in able else min(able, default=None)


def mark(key: str) -> str:
    """Return the short form of an alert's key in which nodes tell each other of it."""
    return blake3(key.encode()).hexdigest()[:MARK_DIGITS]


class SentAlerts:
    """The marks of what was sent, by this node or by who sent before it; the newest last."""

    def __init__(self) -> None:
        self._marks: dict[str, None] = {}

    def due(self, raised: Sequence[Alert], least: Severity) -> list[Alert]:
        """Return what is still to be sent."""
        grave = (alert for alert in raised if rank(alert.severity) >= rank(least))
        return [alert for alert in grave if mark(alert.key) not in self._marks]

    def ended(self, over: Iterable[Alert]) -> list[Alert]:
        """Return of what is over that which somebody was told of: they are to hear the end, too."""
        return [
            replace(alert, is_over=True)
            for alert in over
            if alert.code not in NEWS and mark(alert.key) in self._marks
        ]

    def note(self, keys: Iterable[str]) -> None:
        """Take note that these were sent."""
        self._learn(map(mark, keys))

    def learn(self, marks: object) -> None:
        """Take in what another node knows of: for who begins to send."""
        self._learn(_read(marks))

    def follow(self, marks: object) -> None:
        """Know just what the sender says it has sent: what it has forgotten is over."""
        self._marks = dict.fromkeys(_read(marks))

    def forget(self, over: Iterable[Alert]) -> None:
        """Take note of what is over: where it begins again, it is sent again."""
        for alert in over:
            self._marks.pop(mark(alert.key), None)

    def recent_marks(self) -> list[str]:
        """Return the newest marks, for others."""
        return list(self._marks)[-MAX_MARKS:]

    def _learn(self, marks: Iterable[str]) -> None:
        self._marks |= dict.fromkeys(marks)
        self._marks = dict.fromkeys(list(self._marks)[-4 * MAX_MARKS :])


def _read(marks: object) -> list[str]:
    found = cast("list[object]", marks)[:MAX_MARKS] if isinstance(marks, list) else []
    return [each for each in found if isinstance(each, str) and len(each) == MARK_DIGITS]
