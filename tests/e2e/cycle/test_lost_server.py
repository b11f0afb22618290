"""A server that others run is killed under a generation, and comes back: nothing is lost by it."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemons.cluster import Cluster, Daemon, running
from tests.support.daemons.surroundings import own_network
from tests.support.sources.tiny_domain import write_domain
from tests.support.sources.writing_server import counts_at, free_port, name_of, serving_at

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.full,
    pytest.mark.timeout(300),
]

LOOK_S = 0.2
BEGINS_WITHIN_S = 90.0
SEATS = 6
"""Of the server at first, which refuses more at once; the one that comes back has enough."""


FIRST_S = 0.5
"""The first one takes so long for an answer: enough of the rest is left when it is noticed."""

SLOW_S = 3.0
"""That one writes an answer as slowly as models do: many at once pay on a busy machine, too."""


async def test_a_server_that_is_killed_and_comes_back_is_asked_for_the_rest(
    tmp_path: Path,
) -> None:
    domain = str(write_domain(tmp_path, steps=10, samples=160))
    port = free_port()
    with own_network() as prefix:
        async with running([Daemon(tmp_path, "alone", prefix)]) as cluster:
            await cluster.meet()
            with serving_at((), port), serving_at(prefix, port, SEATS, FIRST_S) as server:
                asked = ("--domain", domain, "--generator", name_of(port), "--without-verdict")
                started = cluster.ctl("cycle", "start", *asked)
                assert started.returncode == 0, started.stderr
                await _generates(cluster, 20)
                refusing = counts_at(prefix, port)
                server.kill()
                server.wait()
                before = _row(cluster)["done"]
            await asyncio.sleep(2.0)
            assert _row(cluster)["state"] == "running", "it waits for the server"
            with serving_at(prefix, port, answer_s=SLOW_S):
                ended = cluster.ctl("cycle", "watch", "--timeout", "150s", timeout_s=170.0)
                assert ended.returncode == 0, cluster.failure_text(ended.stdout + ended.stderr)
                roomy = counts_at(prefix, port)
            row, cycle = _row(cluster), _cycle(cluster)
            print(refusing, roomy, row)
            assert cycle["lost_generator"] is None
            assert "without" not in row["detail"]
            assert row["done"] > before
            assert refusing["refused"] > 0, "it was never too busy"
            assert refusing["most_at_once"] == SEATS
            assert roomy["most_at_once"] > 8, "it wasn't asked more at once, as it pays"


async def _generates(cluster: Cluster, done: int) -> None:
    until_s = time.monotonic() + BEGINS_WITHIN_S
    while not (_row(cluster)["state"] == "running" and _row(cluster)["done"] >= done):
        assert time.monotonic() < until_s, cluster.failure_text("it doesn't generate")
        await asyncio.sleep(LOOK_S)


def _cycle(cluster: Cluster) -> dict[str, Any]:
    return json.loads(cluster.ctl("cycle", "status", "-o", "json").stdout)["cycle"]


def _row(cluster: Cluster) -> dict[str, Any]:
    rows = _cycle(cluster)["phases"]
    return next(row for row in rows if row["phase"] == "generate" and row["round"] == 1)
