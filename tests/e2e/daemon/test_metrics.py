"""Prometheus fetches the metrics of a real daemon."""

import asyncio
import json
import time
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from jupiterd import __version__
from jupiterd.daemon.observability.metrics_table import TABLE, Kind
from tests.support.daemons.cluster import Cluster, Daemon, running
from tests.support.fork_server import jupiterd_command

pytestmark = [
    pytest.mark.smoke,
    pytest.mark.net,
    pytest.mark.timeout(120),
]

TIMEOUT_S = 30.0
LOOK_S = 0.1


async def logged(cluster: Cluster, event: str) -> str:
    """Wait for an event in the first daemon's log; return its line."""
    deadline_s = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline_s:
        for line in cluster[0].log.read_text().splitlines():
            if event in line:
                return line
        await asyncio.sleep(LOOK_S)
    raise AssertionError(cluster.failure_text(f"never logged: {event}"))


def samples_of(text: str) -> dict[str, list[Sample]]:
    """Parse a scrape: each family's name as it is written, and its samples."""
    told = {}
    for family in text_string_to_metric_families(text):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        told[name] = list(family.samples)
    return told


def with_metrics(folder: Path) -> Daemon:
    """Return a daemon that serves metrics and meets nobody else's by multicast."""
    options = (*jupiterd_command(), "--metrics", "0", "--scope", folder.name)
    return Daemon(folder, "node-1", command=options)


async def test_a_real_daemon_is_scraped_and_every_metric_is_there(tmp_path: Path) -> None:
    async with running([with_metrics(tmp_path)]) as cluster:
        await cluster.meet()
        url = (await logged(cluster, "metrics_served")).partition("url=")[2]
        assert url.startswith("http://127.0.0.1:")
        async with httpx.AsyncClient(timeout=TIMEOUT_S) as client:
            await client.get(url)
            answer = await client.get(url)
            other = await client.get(url, headers={"Accept": "application/openmetrics-text"})
        told = json.loads(cluster.ctl("status", "--settings", "-o", "json").stdout)["settings"]
        of_flags = {row["name"]: row["value"] for row in told if row["source"] == "flag"}
        assert (of_flags["metrics"], of_flags["scope"]) == ("127.0.0.1:0", tmp_path.name)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=")
    assert other.text.endswith("# EOF\n")
    told = samples_of(answer.text)
    assert set(told) == {metric.name for metric in TABLE}
    counters = {metric.name for metric in TABLE if metric.kind is Kind.COUNTER}
    assert counters == {name for name in told if name.endswith("_total")}
    assert told["jupiter_build_info"][0].labels["version"] == __version__
    states = {sample.labels["state"]: sample.value for sample in told["jupiter_peers"]}
    assert states == {"alive": 1, "suspect": 0, "gone": 0, "pending": 0}
    assert [sample.value for sample in told["jupiter_is_leader"]] == [1.0]
    codes = {sample.labels["code"] for sample in told["jupiter_health"]}
    assert "alone-locally" in codes
    assert {sample.value for sample in told["jupiter_cycle_phase"]} == {0.0}
    assert told["jupiter_train_loss"] == []
    size, used = told["jupiter_memory_size_bytes"][0], told["jupiter_memory_used_bytes"][0]
    assert size.value > used.value > 1 << 20
    assert 0 <= told["jupiter_cpu_utilization_ratio"][0].value <= 1
    assert told["jupiter_disk_size_bytes"][0].value > told["jupiter_disk_free_bytes"][0].value > 0
    assert told["jupiter_round_duration_seconds"][-2].value == 0
    assert not [s for samples in told.values() for s in samples if {"cycle", "run"} & set(s.labels)]
