"""The lines of health that people see: what is wrong with the cluster, and what was raised of late.

Owns their keys, and that nothing is said twice. Doesn't know when anything is wrong
(`cluster.health`, `cluster.alerts`), or since when (`alert_watch`).
"""

from typing import TYPE_CHECKING, Any

from jupiterd.cluster.alerts import Alert
from jupiterd.cluster.health import TABLE, HealthWarning, judge
from jupiterd.daemon.clock import now_s
from jupiterd.ids import CycleId, NodeId

if TYPE_CHECKING:
    from jupiterd.daemon.node import Node

Line = dict[str, Any]


def health_lines(node: "Node") -> list[Line]:
    """Return a line for each thing, causes first; `node` and `cycle` are what it is about."""
    at_s, alerts = now_s(), node.outlook.alerts
    wrong = [
        (told, alerts.ages.age_s(told.key, at_s)) for told in judge(node.outlook.cluster_view())
    ]
    raised = [(told, at_s - told.since_s) for told in alerts.raised if told.code not in TABLE]
    return [_line(node, told) | {"age_s": int(age_s)} for told, age_s in [*wrong, *raised]]


def alert_lines(node: "Node") -> list[Line]:
    """Return a line for each alert that is raised; `key` tells it from all others."""
    return [_line(node, told) | {"key": told.key} for told in node.outlook.alerts.raised]


def _line(node: "Node", told: HealthWarning | Alert) -> Line:
    subject = told.about.partition("/")[0]
    state = node.journal.state
    is_node = NodeId(subject) in state.members or told.code == "node-waits"
    return {
        "code": told.code,
        "severity": str(told.severity),
        "title": told.title,
        "hint": told.hint,
        "node": subject if is_node else None,
        "cycle": subject if CycleId(subject) in state.cycles else None,
    }
