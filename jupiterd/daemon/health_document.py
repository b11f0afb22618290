"""The lines of health that people see: what is wrong with the cluster, and what was raised of late.

Owns their keys, and that nothing is said twice. Doesn't know when anything is wrong
(`cluster.health`, `cluster.alerts`).
"""

from typing import TYPE_CHECKING, Any

from jupiterd.cluster.alerts import Alert
from jupiterd.cluster.health import TABLE, HealthWarning, judge

if TYPE_CHECKING:
    from jupiterd.daemon.node import Node


def health_lines(node: "Node") -> list[dict[str, Any]]:
    """Return a line for each thing, causes first."""
    raised = (alert for alert in node.outlook.alerts.raised if alert.code not in TABLE)
    return [_line(each) for each in [*judge(node.outlook.cluster_view()), *raised]]


def _line(told: HealthWarning | Alert) -> dict[str, Any]:
    return {
        "code": told.code,
        "severity": str(told.severity),
        "title": told.title,
        "hint": told.hint,
    }
