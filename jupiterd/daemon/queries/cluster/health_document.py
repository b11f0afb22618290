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
        _aged(sources, told)
        for told in (*judge(sources.health.cluster_view()), *_beside(sources.alerts.raised))
        if not sources.alerts.is_dismissed(told)
    ]


def dismissed_lines(sources: DocumentSources) -> list[Line]:
    """Return the same of what people have dismissed: it is still so, and nobody need be told."""
    alerts = sources.alerts
    wrong = filter(alerts.is_dismissed, judge(sources.health.cluster_view()))
    return [_aged(sources, told) for told in (*wrong, *_beside(alerts.dismissed))]


def alert_lines(sources: DocumentSources) -> list[Line]:
    """Return a line for each alert that is raised; `key` tells it from all others."""
    return [_line(sources, told) for told in sources.alerts.raised]


def _beside(alerts: Iterable[Alert]) -> Iterator[Alert]:
    """Yield those of which health doesn't tell by itself."""
    return (told for told in alerts if told.code not in TABLE)


def _aged(sources: DocumentSources, told: HealthWarning | Alert) -> Line:
    at_s, ages = now_s(), sources.alerts.ages
    age_s = at_s - told.since_s if isinstance(told, Alert) else ages.age_s(told.key, at_s)
    return _line(sources, told) | {"age_s": int(age_s)}


def _line(sources: DocumentSources, told: HealthWarning | Alert) -> Line:
    subject = told.about.partition("/")[0]
    state = sources.replica.state
    is_node = NodeId(subject) in state.members or told.code == "node-waits"
    return {
        "key": sources.alerts.key(told),
        "code": told.code,
        "severity": str(told.severity),
        "title": told.title,
        "hint": told.hint,
        "node": subject if is_node else None,
        "cycle": subject if CycleId(subject) in state.cycles else None,
    }
