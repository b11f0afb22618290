"""A cycle that waits after each phase, answered as scripts do."""

import json
from pathlib import Path

import pytest

from tests.e2e.cluster import Cluster, Daemon, Document, running
from tests.e2e.surroundings import own_network
from tests.e2e.tiny_domain import write_domain

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.xdist_group("e2e"),
    pytest.mark.timeout(180),
]


async def test_a_cycle_waits_after_each_phase_and_does_one_again(tmp_path: Path) -> None:
    domain = str(write_domain(tmp_path, steps=5))
    with own_network() as prefix:
        async with running([Daemon(tmp_path, "alone", prefix)]) as cluster:
            await cluster.meet()
            started = cluster.ctl("cycle", "start", "--domain", domain, "--interactive")
            assert started.returncode == 0, started.stderr
            await _asked(cluster, "collect")
            _answer(cluster)
            await _asked(cluster, "filter")
            before = _kept(cluster)
            shares = "mix_ratio.synthetic_share=0.1"
            _answer(cluster, "--redo", "--set", shares)
            await _asked(cluster, "filter")
            assert _kept(cluster) == before, "the same work comes to the same text"
            recorded = [fact for _, fact in _cycle(cluster).placed()]
            items = [getattr(fact, "item", "") for fact in recorded]
            assert {"r1/filter/0", "r1/filter/0~1"} <= set(items)
            _answer(cluster, "--auto")
            ended = await cluster.until(lambda found: found["state"] == "finished", "the end", 90)
            assert [row["state"] for row in ended["phases"] if row["phase"] == "pack"] == ["done"]
            assert cluster.ctl("gate", "run", "-o", "json").returncode == 0


async def _asked(cluster: Cluster, phase: str) -> Document:
    reason = f"waiting for your answer after {phase} of round 1"

    def waits(cycle: Document) -> bool:
        return cycle["state"] == "paused" and cycle["paused"]["reason"] == reason

    found = await cluster.until(waits, reason, 60)
    assert found["paused"]["asks"]
    return found


def _answer(cluster: Cluster, *options: str) -> None:
    resumed = cluster.ctl("cycle", "resume", *options, "-o", "json")
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads(resumed.stdout)["domain"] == "tiny"


def _cycle(cluster: Cluster):
    (cycle,) = cluster[0].state().cycles.values()
    return cycle


def _kept(cluster: Cluster) -> str:
    return _cycle(cluster).completed[1, "r1/filter/0"].outputs["kept"]
