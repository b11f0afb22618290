"""Prints how fast answers are through the pool of engines, beside the same engine's own server.

python -m tests.bench.serving [--engine NAME] [--model FOLDER] [--clients 1,8,32] [--tokens N]
    [--trials N] [--url URL --name MODEL]

Both ask the same process with the same weights and flags, in turns. With a URL, an endpoint in
front of it is asked as well, as it answers to that model's name.
"""

import argparse
import asyncio
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import psutil

from jupiterd.cluster.serving.answer_request import AnswerRequest
from jupiterd.cluster.serving.engine_choice import AUTO
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.daemon.serving.engine_pool import EnginePool, PoolOptions
from jupiterd.daemon.serving.engines.engine_loading import RunningEngine
from tests.bench.figure import machine
from tests.bench.serving.asking import Ask, Speed, best, body, over_http, speed
from tests.real.smollm2 import model_folder
from tests.support.serving.pools import in_folder, open_pool

LEAST_SHARE = 0.95
MOST_FIRST = (1.1, 0.020)
"""A first token takes at most so many times as long, and so many s more."""


@dataclass(frozen=True)
class Asked:
    """What is measured."""

    clients: tuple[int, ...]
    tokens: int
    trials: int
    url: str
    name: str


def through(pool: EnginePool, model: ServedModel) -> Ask:
    """Return what asks the pool."""

    async def ask(request: dict[str, Any]) -> AsyncIterator[bytes]:
        fields = {name: value for name, value in request.items() if name != "model"}
        checked = AnswerRequest(is_chat=True, body=fields, is_streamed=True)
        async with pool.answering(model, checked) as answer:
            async for piece in answer.chunks:
                yield piece

    return ask


async def compare(pool: EnginePool, model: ServedModel, asked: Asked) -> None:
    """Print a line for each number of clients."""
    await pool.load(model)
    running = pool.running(model)
    assert running is not None
    print(f"{running.words}; context {running.context_tokens:,}")
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(
        connector=connector, headers=running.client.headers
    ) as session:
        ways = {"own": over_http(session, running.client.url), "pool": through(pool, model)}
        if asked.url:
            ways["endpoint"] = over_http(session, asked.url)
        for clients in asked.clients:
            before_s = await running.process.processor_s()
            found = await _in_turns(ways, clients, asked, running)
            took_s = await running.process.processor_s() - before_s
            for name in found:
                print(_line(name, clients, found[name], found["own"]))
            each_ms = 1000 * took_s / sum(each.tokens for each in found.values())
            print(f"processor time of the engine for a token: {each_ms:.1f} ms")
    print(f"memory of the engine: {_memory_bytes(running) / 1e6:,.0f} MB")


async def _in_turns(
    ways: dict[str, Ask], clients: int, asked: Asked, running: RunningEngine
) -> dict[str, Speed]:
    """Ask each way once, and again: what else the machine does meets them all alike."""
    found: dict[str, list[Speed]] = {name: [] for name in ways}
    for _ in range(asked.trials):
        for name, ask in ways.items():
            model = asked.name if name == "endpoint" else running.model_field
            found[name].append(await speed(ask, clients, body(asked.tokens, model)))
    return {name: best(each) for name, each in found.items()}


def _line(name: str, clients: int, found: Speed, own: Speed) -> str:
    share = found.tokens_per_s / own.tokens_per_s
    limit_s = own.first_token_s * MOST_FIRST[0] + MOST_FIRST[1]
    is_reached = share >= LEAST_SHARE and found.first_token_s <= limit_s
    goal = "" if name == "own" else f"  {share:.2f} x  {'reached' if is_reached else 'MISSED'}"
    return (
        f"{name:9} {clients:3} clients  {found.tokens_per_s:8.1f} tokens/s  "
        f"first token {found.first_token_s * 1000:8.1f} ms{goal}"
    )


def _memory_bytes(running: RunningEngine) -> int:
    keeper = psutil.Process(running.process.pid)
    return sum(each.memory_info().rss for each in [keeper, *keeper.children(recursive=True)])


async def run(engine: str, folder: Path, asked: Asked) -> None:
    """Open a pool and compare."""
    with tempfile.TemporaryDirectory() as scratch:
        async with open_pool(Path(scratch), PoolOptions(wanted=lambda: engine)) as pool:
            await compare(pool, in_folder(folder), asked)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", default=AUTO)
    parser.add_argument("--model", type=Path, help="a folder; SmolLM2 without one")
    parser.add_argument("--clients", default="1,8,32")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--url", default="", help="an endpoint to ask, too")
    parser.add_argument("--name", default="promoted", help="of the model at that endpoint")
    chosen = parser.parse_args()
    clients = tuple(int(each) for each in chosen.clients.split(","))
    asked = Asked(clients, chosen.tokens, chosen.trials, chosen.url, chosen.name)
    print(machine())
    asyncio.run(run(chosen.engine, chosen.model or model_folder(), asked))


main()
