"""The page of layouts on paper says what the planner says now."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_page_is_what_the_planner_says():
    script = runpy.run_path(str(ROOT / "scripts" / "layouts_table.py"))
    page = (ROOT / "docs" / "layouts.md").read_text()
    assert page == script["page"](), "run make layouts-table"
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    assert len(rows) == 4 + 3 * (1 + len(script["CLUSTERS"]))
