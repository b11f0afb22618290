"""A cycle that generates nothing: the student of its good verdict is the model `promoted` means."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.daemons.cluster import LOOK_S, NAMES, Cluster, Daemon, running
from tests.support.serving.served_command import served_command
from tests.support.sources.tiny_domain import write_domain

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.full,
    pytest.mark.timeout(240),
]

FOLLOWS_WITHIN_S = 60.0


def done(cluster: Cluster, *words: str, daemon: Daemon | None = None) -> str:
    ran = cluster.ctl(*words, daemon=daemon, timeout_s=200)
    assert ran.returncode == 0, cluster.failure_text(ran.stdout + ran.stderr)
    return ran.stdout


def promoted(cluster: Cluster, daemon: Daemon | None = None) -> list[str]:
    """Return the models that a daemon lists as promoted."""
    told = json.loads(done(cluster, "model", "list", "-o", "json", daemon=daemon))
    return [model["name"] for model in told["models"] if model["promoted"]]


async def answered(client: httpx.AsyncClient, expected: Callable[[httpx.Response], bool]) -> Any:
    """Ask the endpoint for `promoted` until its answer is as expected; return it."""
    body = {"model": "promoted", "prompt": "The statement", "max_tokens": 4, "temperature": 0}
    async with asyncio.timeout(FOLLOWS_WITHIN_S):
        while not expected(  # noqa: ASYNC110 - the endpoint is asked
            found := await client.post("/completions", json=body)
        ):
            await asyncio.sleep(LOOK_S)
    return found.json()


async def test_the_student_of_a_good_verdict_answers_as_promoted_on_another_machine(
    tmp_path: Path,
) -> None:
    domain = write_domain(tmp_path, steps=60, samples=0, batch=16)
    begin = ("cycle", "start", "--domain", str(domain), "--seed", "7")
    async with running([Daemon(tmp_path, name) for name in NAMES[:2]]) as cluster:
        await cluster.meet()
        await cluster.say_yes()
        one, two = cluster.daemons
        async with (
            served_command(two.state_dir) as serving,
            httpx.AsyncClient(base_url=serving.url, timeout=60) as client,
        ):
            await answered(client, lambda found: found.status_code == 404)
            told = await asyncio.to_thread(done, cluster, *begin, "--wait")
            assert "verdict: PROMOTE" in told, told
            await answered(client, lambda found: found.status_code == 200)
            await asyncio.to_thread(_is_told, cluster)
            await asyncio.to_thread(_is_talked_to, cluster, one)
            await asyncio.to_thread(done, cluster, "cycle", "rollback", "--yes")
            await answered(client, lambda found: found.status_code == 404)
            assert promoted(cluster) == []
            done(cluster, "model", "promote", "tiny/1", "--yes")
            await answered(client, lambda found: found.status_code == 200)


def _is_told(cluster: Cluster) -> None:
    assert [promoted(cluster, daemon) for daemon in cluster.daemons] == [["tiny/1"]] * 2
    status = json.loads(done(cluster, "cycle", "status", "-o", "json"))["cycle"]
    assert (status["promoted"], status["writers"]) == (status["verdicts"][0]["candidate"], [])
    assert [each.partition(": ")[0] for each in status["promotions"]] == ["round 1"]
    assert "was promoted" in done(cluster, "cycle", "status")
    assert "becomes the promoted model" in done(cluster, "cycle", "explain")


def _is_talked_to(cluster: Cluster, daemon: Daemon) -> None:
    asked = ("model", "chat", "promoted", "What is a statement?", "--max-tokens", "4")
    told = json.loads(done(cluster, *asked, "-o", "json", daemon=daemon))
    assert told["answers"][0]["completion_tokens"] > 0
