"""The page of metrics and the dashboard say what there is."""

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from jupiterd.cycle.base.work_item import Phase
from jupiterd.daemon.observability.metrics_table import STATES, TABLE, Kind

ROOT = Path(__file__).parents[3]
DASHBOARD = json.loads((ROOT / "config" / "grafana" / "jupiter.json").read_text())

NAME = re.compile(r"jupiter_[a-z_]+")
SELECTOR = re.compile(r"(jupiter_[a-z_]+)\{([^}]*)\}")
WIDTH = 24


def targets() -> list[tuple[str, str]]:
    return [(p["title"], t["expr"]) for p in DASHBOARD["panels"] for t in p.get("targets", ())]


def names() -> dict[str, frozenset[str]]:
    """Return every name that a scrape has samples of, with its labels."""
    found = {metric.name: frozenset(metric.labels) for metric in TABLE}
    for metric in TABLE:
        if metric.kind is Kind.HISTOGRAM:
            found |= {f"{metric.name}_{part}": frozenset({"le"}) for part in ("bucket",)}
            found |= {f"{metric.name}_{part}": frozenset() for part in ("sum", "count")}
    return found


def test_the_page_is_what_the_tables_say() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text()
    script = runpy.run_path(str(ROOT / "scripts" / "metrics_table.py"))
    assert page == script["page"](), "run make metrics-table"
    assert all(f"| `{metric.name}` |" in page for metric in TABLE)


@pytest.mark.parametrize(("panel", "expression"), targets())
def test_every_expression_of_the_dashboard_asks_for_what_is_told(
    panel: str, expression: str
) -> None:
    known = names()
    asked = NAME.findall(expression)
    assert asked, panel
    assert set(asked) <= set(known)
    for name, selector in SELECTOR.findall(expression):
        labels = set(re.findall(r"(\w+)\s*[=!]", selector))
        assert labels <= known[name] | {"job", "instance"}, panel
        for state in re.findall(r'state="(\w+)"', selector):
            assert state in STATES
    counters = [metric.name for metric in TABLE if metric.kind is Kind.COUNTER]
    for name in set(asked) & set(counters):
        assert re.search(rf"(rate|increase)\({name}", expression), "a counter only ever rises"
    assert expression.count("(") == expression.count(")")


def test_every_metric_is_somewhere_on_the_dashboard() -> None:
    asked = {name for _, expression in targets() for name in NAME.findall(expression)}
    bases = {re.sub(r"_(bucket|sum|count)$", "", name) for name in asked}
    assert {metric.name for metric in TABLE} <= asked | bases


def test_the_dashboard_is_of_the_form_that_grafana_takes() -> None:
    assert DASHBOARD["uid"] == "jupiter"
    assert DASHBOARD["id"] is None
    assert isinstance(DASHBOARD["schemaVersion"], int)
    (source,) = DASHBOARD["__inputs"]
    assert source == {
        "name": "DS_PROMETHEUS",
        "label": "Prometheus",
        "type": "datasource",
        "pluginId": "prometheus",
    }
    panels: list[dict[str, Any]] = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        place = panel["gridPos"]
        assert 0 <= place["x"] < place["x"] + place["w"] <= WIDTH
        assert place["h"] > 0
        assert panel["type"] in {"row", "stat", "timeseries", "table", "state-timeline"}
        assert panel["title"]
        if panel["type"] != "row":
            assert panel["datasource"] == {"type": "prometheus", "uid": "${DS_PROMETHEUS}"}
            ids = [target["refId"] for target in panel["targets"]]
            assert len(set(ids)) == len(ids)


def test_no_panel_lies_on_another() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


def test_phases_are_named_by_the_metric_itself() -> None:
    told = json.dumps(DASHBOARD)
    assert not [phase for phase in Phase if f'phase=\\"{phase}\\"' in told]
