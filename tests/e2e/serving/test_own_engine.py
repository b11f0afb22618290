"""A real daemon answers with a real engine, which doesn't outlive it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from tests.support.daemons.cluster import NAMES, Daemon, running
from tests.support.serving.slow_models import CONTEXT, write_chatty

pytest.importorskip("xllamacpp")
pytestmark = [pytest.mark.net, pytest.mark.full, pytest.mark.timeout(240)]
TIMEOUT_S = 60.0
GONE_WITHIN_S = 20.0
ENGINE = "jupiterd.workers.serving.llama_server"


async def test_a_daemon_answers_with_a_folder_and_its_engine_ends_with_it(tmp_path: Path) -> None:
    model = write_chatty(tmp_path / "model")
    async with running([Daemon(tmp_path, NAMES[0])]) as cluster:
        await cluster.meet()
        async with asking(cluster[0]) as http:
            said = {"model": str(model), "messages": [{"role": "user", "content": "the bread"}]}
            answer = await http.post("/v1/chat/completions", json={**said, "max_tokens": 5})
            assert answer.status_code == 200, answer.text
            assert answer.json()["usage"]["completion_tokens"] == 5
            long = {"model": str(model), "prompt": "of" * 4 * CONTEXT}
            refused = await http.post("/v1/completions", json=long)
            assert refused.status_code == 400
            assert f"the model's context {CONTEXT:,}" in refused.json()["error"]["message"]
        (engine,) = await asyncio.to_thread(engines_below, tmp_path)
        await asyncio.to_thread(cluster[0].kill)
        await asyncio.to_thread(psutil.wait_procs, [engine], GONE_WITHIN_S)
        assert not engine.is_running()


def engines_below(state: Path) -> list[psutil.Process]:
    """Return the engines whose files are below a folder."""
    found = (each for each in psutil.process_iter(["cmdline"]) if each.info["cmdline"])
    words = ((each, " ".join(each.info["cmdline"])) for each in found)
    return [
        each
        for each, said in words
        if ENGINE in said and str(state) in said and "keeper" not in said
    ]


@asynccontextmanager
async def asking(daemon: Daemon) -> AsyncGenerator[httpx.AsyncClient]:
    way = httpx.AsyncHTTPTransport(uds=str(daemon.state_dir / "serve.sock"))
    async with httpx.AsyncClient(transport=way, base_url="http://here", timeout=TIMEOUT_S) as http:
        yield http
