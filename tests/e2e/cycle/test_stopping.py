"""Stopping a cycle, and what stands in the way of another."""

from pathlib import Path

import pytest

from jupiterd.errors import ExitCode
from tests.support.daemons.cluster import Document, all_gone, three_daemons
from tests.support.daemons.training_runs import write_letters
from tests.support.sources.tiny_domain import write_domain

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.timeout(180),
]


def trains(cycle: Document) -> bool:
    return bool(cycle["gang"]) and all(seat["pid"] for seat in cycle["gang"])


async def test_a_stopped_cycle_leaves_no_worker_and_makes_room_for_another(tmp_path: Path) -> None:
    domain = str(write_domain(tmp_path, steps=100_000))
    async with three_daemons(tmp_path) as cluster:
        await cluster.meet()
        started = cluster.ctl("cycle", "start", "--domain", domain)
        assert started.returncode == 0, started.stderr
        await cluster.until(trains, "a gang that trains", 60)

        refused = cluster.ctl("cycle", "start", "--domain", domain, daemon=cluster[1])
        assert refused.returncode == ExitCode.CONFLICT
        assert "running already" in refused.stderr
        assert "hint:" in refused.stderr

        train = ("train", "start", "--data", write_letters(tmp_path), "--model", "1m", "--dry-run")
        looked = cluster.ctl(*map(str, train))
        assert looked.returncode == 0, looked.stderr
        assert "just now it would be refused: cycle " in looked.stdout
        assert cluster.ctl(*map(str, train), "--engine", "jax").returncode == ExitCode.USAGE

        workers = [pid for daemon in cluster.daemons for pid in daemon.workers()]
        assert len(workers) >= 3, "two ranks and their store"
        waiting = ("--yes", "--wait", "--timeout", "30s")
        stopped = cluster.ctl("cycle", "stop", *waiting, daemon=cluster[2])
        assert stopped.returncode == 0, stopped.stderr
        assert await all_gone(workers, 15), "a worker goes on"
        assert [pid for daemon in cluster.daemons for pid in daemon.workers()] == []
        first = await cluster.until(lambda cycle: cycle["state"] == "stopped", "the stop", 10)
        nothing = cluster.ctl("cycle", "stop", "--yes")
        assert nothing.returncode == ExitCode.NOT_FOUND

        again = cluster.ctl("cycle", "start", "--domain", domain, daemon=cluster[1])
        assert again.returncode == 0, again.stderr
        second = await cluster.until(
            lambda cycle: cycle["id"] != first["id"] and cycle["phase"] is not None,
            "the second cycle",
            30,
        )
        assert second["state"] == "running"
