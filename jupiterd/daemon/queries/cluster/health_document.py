"""The lines of health that people see: what is wrong with the cluster, and what was raised of late.

Owns their keys, and that nothing is said twice. Doesn't know when anything is wrong
(`cluster.health`, `cluster.alerts`), or since when (`alert_watch`).
"""

from collections.abc import Iterable, Iterator
from typing import Any

from jupiterd.cluster.health.alerts import Alert
from jupiterd.cluster.health.health import TABLE, HealthWarning, judge
from jupiterd.daemon.queries.document_sources import DocumentSources
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.ids import CycleId, NodeId

Line = dict[str, Any]


def health_lines(sources: DocumentSources) -> list[Line]:
    """Return a line for each thing, causes first; `node` and `cycle` are what it is about."""
    return [
        _aged(sources, alarm)
        for alarm in (*judge(sources.health.cluster_view()), *_not_in_health(sources.alerts.raised))
        if not sources.alerts.is_dismissed(alarm)
    ]


def dismissed_lines(sources: DocumentSources) -> list[Line]:
    """Return the same of what people have dismissed: it still holds, but isn't shown as news."""
    alerts = sources.alerts
    wrong = filter(alerts.is_dismissed, judge(sources.health.cluster_view()))
    return [_aged(sources, alarm) for alarm in (*wrong, *_not_in_health(alerts.dismissed))]


def alert_lines(sources: DocumentSources) -> list[Line]:
    """Return a row for each raised alert; its `key` is unique in the cluster."""
    return [_line(sources, alarm) for alarm in sources.alerts.raised]


def _not_in_health(alerts: Iterable[Alert]) -> Iterator[Alert]:
    """Yield the alerts that health doesn't report by itself."""
    return (alarm for alarm in alerts if alarm.code not in TABLE)


def _aged(sources: DocumentSources, alarm: HealthWarning | Alert) -> Line:
    at_s, ages = now_s(), sources.alerts.ages
    age_s = at_s - alarm.since_s if isinstance(alarm, Alert) else ages.age_s(alarm.key, at_s)
    return _line(sources, alarm) | {"age_s": int(age_s)}


def _line(sources: DocumentSources, alarm: HealthWarning | Alert) -> Line:
    subject = alarm.about.partition("/")[0]
    state = sources.replica.state
    is_node = NodeId(subject) in state.members or alarm.code == "node-waits"
    return {
        "key": sources.alerts.key(alarm),
        "code": alarm.code,
        "severity": str(alarm.severity),
        "title": alarm.title,
        "hint": alarm.hint,
        "node": subject if is_node else None,
        "cycle": subject if CycleId(subject) in state.cycles else None,
    }
