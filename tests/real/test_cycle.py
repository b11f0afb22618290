"""A cycle that begins with a real model: the gate knows a better student from a ruined one.

Each trains on about 20,000 tokens, with the batch, the rate and the schedule that Jupiter chooses;
the number of steps and the length of a sequence alone are bounded. About 10,000 tokens of held-out
pages and 35,000 of general text are scored.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.real.pages import write_pages
from tests.support.daemons.cluster import Cluster

pytestmark = [pytest.mark.real, pytest.mark.net, pytest.mark.timeout(3000)]

PAGES_BYTES = 1_000_000
DOMAIN = """version: 1
domain: real
title: Documentation that people wrote
language: en
data_sources:
  - {{kind: folder, path: {pages}, license: MIT, glob: "**/*.md"}}
holdout: {{salt: real}}
generation: {{templates: []}}
evaluation: {{max_document_bytes: 1024}}
"""


def verdict(cluster: Cluster, model: Path, folder: Path, *more: str) -> dict[str, Any]:
    """Run a cycle of one round that begins with the model; return its verdict."""
    domain = folder / "real.yaml"
    domain.write_text(DOMAIN.format(pages=write_pages(folder / "pages", PAGES_BYTES)))
    asked = ("--domain", str(domain), "--init", str(model), "--seq-len", "256")
    limits = ("--max-steps", "20", "--wait", "--timeout", "2500")
    done = cluster.ctl("cycle", "start", *asked, *limits, *more, timeout_s=2600)
    print(done.stdout)
    assert done.returncode == 0, cluster.failure_text(done.stderr)
    shown = json.loads(cluster.ctl("cycle", "status", "-o", "json").stdout)["cycle"]
    return shown["verdicts"][-1]


async def test_a_student_that_was_tuned_is_promoted(
    alone: Cluster, model: Path, tmp_path: Path
) -> None:
    found = verdict(alone, model, tmp_path)
    assert found["verdict"] == "PROMOTE", found


async def test_a_model_that_a_high_rate_has_ruined_is_not(
    alone: Cluster, model: Path, tmp_path: Path
) -> None:
    found = verdict(alone, model, tmp_path, "--lr", "3e-3", "--accept-worse")
    assert found["verdict"] != "PROMOTE", found
