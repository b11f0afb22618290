"""A cycle whose student is held together by its machines: two rounds from data to the model."""

import asyncio
import json
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import CheckpointCommitted
from tests.support.daemons.cluster import NAMES, Daemon, running
from tests.support.sources.tiny_domain import write_domain
from tests.support.strikes.wholeness import assert_whole

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.full, pytest.mark.timeout(500)]

STEPS = 40


async def test_a_cycle_trains_a_student_that_is_cut_judges_it_and_exports_it(
    tmp_path: Path,
) -> None:
    domain = str(write_domain(tmp_path, STEPS))
    async with running([Daemon(tmp_path, name) for name in NAMES[:2]]) as cluster:
        await cluster.meet()
        for daemon in cluster.daemons:
            assert cluster.ctl("node", "role", daemon.name, "hybrid").returncode == 0
        begin = ("cycle", "start", "--domain", domain, "--rounds", "2", "--shard", "1")
        more = ("--engine", "torch", "--seed", "7", "--wait")
        planned = cluster.ctl(*begin, "--dry-run")
        assert "cut in stage 1 over node-" in planned.stdout, planned.stdout
        done = await asyncio.to_thread(cluster.ctl, *begin, *more, timeout_s=300)
        assert done.returncode == 0, cluster.failure_text(done.stdout + done.stderr)
        (cycle,) = cluster[0].state().cycles.values()
        gangs = [
            (fact.round, fact.stage, len(fact.gang)) for fact in cycle.attempts_opened.values()
        ]
        assert gangs == [(1, 1, 2), (2, 1, 2)]
        last = [f for f in cycle.canonical_branch() if isinstance(f, CheckpointCommitted)][-1]
        assert (last.round, last.step, last.is_final) == (2, STEPS, True)
        shown = cluster.ctl("cycle", "status", "-o", "json")
        assert json.loads(shown.stdout)["cycle"]["state"] == "finished"
        made = Path(done.stdout.splitlines()[-1].removeprefix("model: "))
        assert await asyncio.to_thread(lambda: [*made.glob("*.safetensors")])
        await assert_whole(cluster, cycle, STEPS, tmp_path)
