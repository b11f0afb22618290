"""A model that two machines have trained: a real engine of one answers clients of the other."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.serving.test_lost_node import asking
from tests.support.daemons.cluster import Cluster, Daemon
from tests.support.daemons.training_runs import two_daemons, write_letters

pytest.importorskip("xllamacpp")
pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.timeout(500)]

LOADED_WITHIN_S = 180.0


async def serving_of(asked: Daemon, name: str) -> list[Mapping[str, Any]]:
    view = await asked.ask()
    nodes = (view or {}).get("nodes", ())
    return [row for node in nodes if node["name"] == name for row in node["serving"]]


async def models(http: httpx.AsyncClient) -> list[str]:
    reply = await http.get("/v1/models")
    return [row["id"] for row in reply.json()["data"]]


async def completed(http: httpx.AsyncClient, model: str) -> str:
    body = {"model": model, "prompt": "the queen walks", "temperature": 0.0, "max_tokens": 8}
    reply = await http.post("/v1/completions", json=body, timeout=LOADED_WITHIN_S)
    assert reply.status_code == 200, reply.text
    said = reply.json()
    assert said["usage"]["completion_tokens"] > 0
    return str(said["choices"][0]["text"])


async def until_told(cluster: Cluster, asked: Daemon, name: str, *, answers: int) -> None:
    async with asyncio.timeout(30):
        while True:
            rows = await serving_of(asked, name)
            if any(row["ready"] and row["answers"] >= answers for row in rows):
                return
            await asyncio.sleep(0.1)


@pytest.mark.full
async def test_a_trained_model_is_answered_by_the_machine_that_has_it_ready(tmp_path: Path) -> None:
    letters = write_letters(tmp_path)
    async with two_daemons(tmp_path) as two:
        cluster, here, there = two.cluster, two.leader, two.survivor
        trained = await two.train(letters, "--max-steps", "12")
        assert trained.returncode == 0, cluster.failure_text(trained.stdout + trained.stderr)
        async with asking(here) as ours, asking(there) as theirs:
            (model,) = await models(theirs)
            written = await completed(theirs, model)
            await until_told(cluster, here, there.name, answers=0)
            assert await completed(ours, model) == written
            assert not await serving_of(here, here.name), "it was loaded here as well"
            there.kill()
            assert await completed(ours, model) == written, "this machine has a copy of the model"
