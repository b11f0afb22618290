"""Eight answers from another machine's daemon, which is killed or hangs in mid answer."""

import asyncio
import json
import signal
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.support.daemons.cluster import NAMES, Cluster, Daemon, running
from tests.support.daemons.surroundings import own_network
from tests.support.serving import written_jupiterd
from tests.support.serving.written_jupiterd import NAME

PROGRAM = Path(written_jupiterd.__file__)
TIMEOUT_S = 60.0
TOLD_WITHIN_S = 2.0
STREAMS = 8


@asynccontextmanager
async def asking(daemon: Daemon) -> AsyncGenerator[httpx.AsyncClient]:
    """Return a client of a daemon's own socket."""
    way = httpx.AsyncHTTPTransport(uds=str(daemon.state_dir / "serve.sock"))
    async with httpx.AsyncClient(transport=way, base_url="http://here", timeout=TIMEOUT_S) as http:
        yield http


def body(max_tokens: int) -> dict[str, object]:
    messages = [{"role": "user", "content": "hello"}]
    return {"model": NAME, "messages": messages, "max_tokens": max_tokens, "stream": True}


@dataclass
class Stream:
    """What one client got."""

    writers: set[str]
    error: str = ""
    is_done: bool = False
    tokens: int = 0
    ended_s: float = 0.0


async def streamed(http: httpx.AsyncClient, max_tokens: int, got: Stream) -> None:
    async with http.stream("POST", "/v1/chat/completions", json=body(max_tokens)) as response:
        assert response.status_code == 200, await response.aread()
        async for line in response.aiter_lines():
            data = line.removeprefix("data: ")
            if data == "[DONE]":
                got.is_done = True
            elif data:
                note(json.loads(data), got)
    got.ended_s = time.monotonic()


def note(said: dict[str, object], got: Stream) -> None:
    if isinstance(error := said.get("error"), dict):
        got.error = str(error["message"])
        return
    content = said["choices"][0]["delta"]["content"]  # type: ignore[index]
    got.writers.add(content.split()[-1])
    got.tokens += 1


async def answer(http: httpx.AsyncClient) -> Stream:
    got = Stream(set())
    async with asyncio.timeout(TIMEOUT_S):
        await streamed(http, 3, got)
    assert (got.is_done, got.tokens, got.error) == (True, 3, "")
    return got


@asynccontextmanager
async def two_that_serve(folder: Path) -> AsyncGenerator[tuple[Cluster, Daemon, Daemon]]:
    """Return two daemons of which the second serves the model, as the first has heard."""
    command = [sys.executable, "-P", str(PROGRAM)]
    with own_network() as prefix:
        daemons = [Daemon(folder, name, prefix, command=command) for name in NAMES[:2]]
        async with running(daemons) as cluster:
            await cluster.meet()
            first, second = daemons
            async with asking(second) as there, asyncio.timeout(TIMEOUT_S):
                await answer(there)
                while not await serves(first, second.name):
                    await answer(there)
            yield cluster, first, second


async def serves(asked: Daemon, name: str) -> bool:
    view = await asked.ask()
    rows = [row for node in (view or {}).get("nodes", ()) if node["name"] == name
            for row in node["serving"]]  # fmt: skip
    return any(row["model"] == NAME and row["ready"] for row in rows)


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(signal.SIGKILL, id="killed", marks=pytest.mark.smoke),
        pytest.param(signal.SIGSTOP, id="hangs"),
    ],
)
async def test_eight_clients_are_told_within_two_seconds_that_their_node_is_lost(
    tmp_path: Path, end: signal.Signals
) -> None:
    async with two_that_serve(tmp_path) as (cluster, first, second), asking(first) as http:
        found = [Stream(set()) for _ in range(STREAMS)]
        streams = [asyncio.ensure_future(streamed(http, 100_000, each)) for each in found]
        async with asyncio.timeout(TIMEOUT_S):
            while not all(each.tokens > 3 for each in found):
                assert not any(stream.done() for stream in streams), cluster.failure_text("ended")
                await asyncio.sleep(0.02)
        assert {writer for each in found for writer in each.writers} == {str(second.pid)}
        assert second.process is not None
        second.process.send_signal(end)
        began_s = time.monotonic()
        async with asyncio.timeout(TIMEOUT_S):
            await asyncio.gather(*streams)
        print(f"told after {max(each.ended_s for each in found) - began_s:.2f} s")
        assert max(each.ended_s for each in found) - began_s < TOLD_WITHIN_S
        assert all(each.is_done and "lost" in each.error for each in found), found
        begins_s = time.monotonic()
        assert (await answer(http)).writers == {str(first.pid)}
        print(f"answered anew after {time.monotonic() - begins_s:.2f} s")
        assert time.monotonic() - begins_s < TOLD_WITHIN_S
        second.process.send_signal(signal.SIGCONT)
