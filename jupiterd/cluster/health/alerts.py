"""The table of alerts: conditions that people are notified of while they don't look.

Owns the kinds of alert, the condition of each, and how long it must hold, or be over, before it
counts, so that no alert flaps. Pure: the caller passes the time. Doesn't know who is notified, or
how (`webhook_sender`).
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from jupiterd.cluster.health import health
from jupiterd.cluster.values.machine_load import Load
from jupiterd.cluster.values.severity import Severity
from jupiterd.formats import counted, printable
from jupiterd.ids import NodeId

MAX_TITLE_CHARACTERS: Final = 300

GIB: Final = 1 << 30
LOW_SHARE: Final = 0.05
LEAST_LOW_BYTES: Final = 2 * GIB
MOST_LOW_BYTES: Final = 20 * GIB
"""A disk is nearly full with 5 % left; on large ones less is enough, on small ones more needed."""
ENOUGH_AGAIN: Final = 1.25
"""The alert is over once this many times the limit is free."""


@dataclass(frozen=True)
class Rule:
    """One kind of alert."""

    severity: Severity
    title: str
    """May name {subject} and {detail}."""
    hint: str
    hold_s: float = 0.0
    """Seconds that the condition must hold without a break before the alert is raised."""
    clear_s: float = 0.0
    """Seconds without the condition after which the alert is over."""


_GONE, _OUT = health.TABLE["node-gone"], health.TABLE["link-out"]

TABLE: Mapping[str, Rule] = {
    "loss-nan": Rule(
        Severity.ERROR,
        "{subject} stopped: {detail}",
        "lower the learning rate, and start again from the last good checkpoint",
    ),
    "run-failed": Rule(
        Severity.ERROR,
        "{subject} can't go on: {detail}",
        "the reason and what to do are in: jupiterctl cycle status, or jupiterctl train status",
    ),
    "stalled-step": Rule(
        Severity.ERROR,
        "{subject} stands still: no step for {detail}",
        "look into the log of the gang's machines: jupiterctl logs --node NODE",
        clear_s=10.0,
    ),
    "loss-spike": Rule(
        Severity.WARNING,
        "the loss of {subject} jumped to {detail}",
        "if it doesn't come down again, go back: jupiterctl cycle rollback; or lower the rate",
        clear_s=60.0,
    ),
    "generator-lost": Rule(
        Severity.WARNING,
        "{subject} goes on without its generator: {detail}",
        "look whether the server runs and has the model; the next round asks it again",
    ),
    "loss-high": Rule(
        Severity.WARNING,
        "the loss of {subject} is {detail}",
        "stop it, and start again with a lower learning rate: --lr, or training.learning_rate",
        hold_s=30.0,
        clear_s=60.0,
    ),
    "held-out-risen": Rule(
        Severity.WARNING,
        "the loss of {subject} on held-out text has risen since {detail}",
        "its best weights are kept; more text helps, more steps don't",
        clear_s=60.0,
    ),
    "not-offered": Rule(
        Severity.WARNING,
        "{subject} wasn't allowed to read {detail}",
        "if that is meant, type the command on that machine, or add readable_folders to its "
        "jupiter.yaml; if it isn't: jupiterctl node remove NODE",
    ),
    "gang-knocked": Rule(
        Severity.WARNING,
        "somebody who is no member tried to connect to the ranks of {subject}: {detail}",
        "Linux lets nobody else in, and the training goes on; find out who scans your network, and "
        "see docs/security.md for Macs",
    ),
    "port-crowded": Rule(
        Severity.WARNING,
        "somebody held all the connections to {subject} that one address may hold: {detail}",
        "members have places of their own, so the cluster goes on; find out who fills the port, "
        "and see docs/security.md",
    ),
    "disk-low": Rule(
        Severity.WARNING,
        "the disk of {subject} is nearly full: {detail} free",
        "free some space, or let Jupiter take less: store_gib and rounds_kept in jupiter.yaml",
        hold_s=30.0,
        clear_s=60.0,
    ),
    "throttling": Rule(
        Severity.WARNING,
        "{subject} slows down because it is too hot: {detail}",
        "let air to it, or clean its fans; the cluster gives it less work meanwhile",
        hold_s=60.0,
        clear_s=300.0,
    ),
    "link-out": Rule(
        _OUT.severity,
        "{subject} reaches no other: its {detail}",
        "see jupiterctl status there: plug it in or switch it on, or what is at its other end",
        hold_s=60.0,
        clear_s=30.0,
    ),
    "node-gone": Rule(_GONE.severity, _GONE.title, _GONE.hint, hold_s=60.0, clear_s=30.0),
    "mostly-dropped": Rule(
        Severity.WARNING,
        "{subject}: {detail}",
        "which, and the limit that each missed: jupiterctl data samples --dropped",
    ),
    "verdict": Rule(
        Severity.INFO,
        "{subject}: {detail}",
        "the numbers behind it: jupiterctl cycle explain",
    ),
}
"""Code -> rule of every alert, the gravest first."""


@dataclass(frozen=True)
class AlertCondition:
    """A condition that holds now."""

    code: str
    about: str
    """A lasting id of its subject, a node's or a run's; names may change."""
    subject: str
    """The subject's name for people."""
    detail: str = ""
    cause: str = ""
    """Distinguishes successive events of one key; empty for a condition that lasts."""
    is_seen: bool = False
    """People have seen it, as the ledger says of it; see `alarms.dismissals` for all others."""

    @property
    def key(self) -> str:
        """Its identity among all conditions."""
        return f"{self.code}:{self.about}"


@dataclass(frozen=True)
class Alert:
    """An alert that people are notified of."""

    key: str
    code: str
    severity: Severity
    title: str
    hint: str
    since_s: float
    """When its condition began to hold."""
    about: str = ""
    """As the finding's."""
    is_over: bool = False
    """Its condition no longer holds: this is the notice of the end."""
    cause: str = ""
    is_seen: bool = False
    """As the finding's."""


def strain_findings(
    node: NodeId, name: str, load: Load, raised: AbstractSet[str]
) -> Iterator[AlertCondition]:
    """Yield the conditions of a machine; `raised`: the keys of those that are raised already."""
    disk = AlertCondition("disk-low", node, name, _gib(load.get("disk_free_bytes", 0.0)))
    if _is_low(load, 1.0 if disk.key not in raised else ENOUGH_AGAIN):
        yield disk
    if (throttled := load.get("throttled_gpus", 0)) >= 1:
        detail = counted(int(throttled), "GPU")
        yield AlertCondition("throttling", node, name, detail)


def _is_low(load: Load, factor: float) -> bool:
    free, size = load.get("disk_free_bytes"), load.get("disk_bytes")
    if free is None or not size:
        return False
    return free < factor * min(MOST_LOW_BYTES, max(LEAST_LOW_BYTES, LOW_SHARE * size))


def _gib(size_bytes: float) -> str:
    return f"{size_bytes / GIB:.1f} GiB"


class AlertBook:
    """The alerts that are raised; `look` updates them."""

    def __init__(self) -> None:
        self._began_s: dict[str, float] = {}
        """Key -> when its condition began to hold, raised or not."""
        self._true_since_s: dict[str, float] = {}
        """Key of a raised alert -> when its condition last held."""
        self._raised: dict[str, Alert] = {}

    @property
    def raised(self) -> tuple[Alert, ...]:
        """All raised alerts, the gravest first."""
        order = list(TABLE)
        return tuple(sorted(self._raised.values(), key=lambda a: (order.index(a.code), a.key)))

    def look(
        self, now_s: float, findings: Sequence[AlertCondition]
    ) -> tuple[tuple[Alert, ...], tuple[Alert, ...]]:
        """Take the conditions that hold now; return the alerts that begin, and those that end."""
        holding = {finding.key: finding for finding in findings}
        self._began_s = {key: self._began_s.get(key, now_s) for key in holding}
        fresh: list[Alert] = []
        for key, finding in holding.items():
            if key in self._raised:
                began_s = self._raised[key].since_s
            elif now_s - (began_s := self._began_s[key]) < TABLE[finding.code].hold_s:
                continue
            alert = _alert(finding, began_s)
            fresh += [] if key in self._raised else [alert]
            self._raised[key], self._true_since_s[key] = alert, now_s
        return tuple(fresh), tuple(self._over(now_s, holding.keys()))

    def _over(self, now_s: float, holding: AbstractSet[str]) -> Iterator[Alert]:
        for key in sorted(self._raised.keys() - holding):
            alert = self._raised[key]
            if now_s - self._true_since_s[key] >= TABLE[alert.code].clear_s:
                del self._raised[key], self._true_since_s[key]
                yield alert


def _alert(finding: AlertCondition, since_s: float) -> Alert:
    rule = TABLE[finding.code]
    text = rule.title.format(subject=finding.subject, detail=finding.detail)
    title = printable(text[:MAX_TITLE_CHARACTERS])  # others have a hand in names and reasons
    return Alert(
        finding.key, finding.code, rule.severity, title, rule.hint, since_s, finding.about,
        cause=finding.cause, is_seen=finding.is_seen,
    )  # fmt: skip
