"""Clients that ask at a time, and how fast they are answered.

Owns asking over HTTP and the figures of it. Doesn't know engines or pools.
"""

import asyncio
import json
import statistics
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp

PROMPT = "Write a long story about the sea, and begin at once."


@dataclass(frozen=True)
class Speed:
    """Of all clients together."""

    tokens_per_s: float
    first_token_s: float
    """Median over the clients."""
    tokens: int


@dataclass(frozen=True)
class Answered:
    """One client's answer."""

    tokens: int
    first_token_s: float


Ask = Callable[[dict[str, Any]], AsyncIterator[bytes]]
"""Yields the pieces of one streamed answer to a request's body."""


def body(tokens: int, model: str) -> dict[str, Any]:
    """Return a request for a conversation of one message, the same for everybody."""
    return {
        "model": model,
        "messages": [{"role": "user", "content": PROMPT}],
        "max_tokens": tokens,
        "temperature": 0.0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def speed(ask: Ask, clients: int, request: dict[str, Any]) -> Speed:
    """Have so many clients ask at once; return how fast they are answered."""
    began_s = time.perf_counter()
    answers = await asyncio.gather(*(_answered(ask, request) for _ in range(clients)))
    took_s = time.perf_counter() - began_s
    tokens = sum(each.tokens for each in answers)
    first_s = statistics.median(each.first_token_s for each in answers)
    return Speed(tokens / took_s, first_s, tokens)


def best(found: Sequence[Speed]) -> Speed:
    """Return the best of some trials: other programs take from the others."""
    return Speed(
        max(each.tokens_per_s for each in found),
        min(each.first_token_s for each in found),
        sum(each.tokens for each in found),
    )


def over_http(session: aiohttp.ClientSession, url: str) -> Ask:
    """Return what asks an endpoint, whosever it is."""

    async def ask(request: dict[str, Any]) -> AsyncIterator[bytes]:
        async with session.post(f"{url}/v1/chat/completions", json=request) as reply:
            if reply.status != 200:
                raise RuntimeError(f"{url} answers {reply.status}: {await reply.text()}")
            async for piece in reply.content.iter_any():
                yield piece

    return ask


async def _answered(ask: Ask, request: dict[str, Any]) -> Answered:
    began_s, first_s, rest, tokens = time.perf_counter(), 0.0, b"", 0
    async for piece in ask(request):
        *events, rest = (rest + piece).split(b"\n\n")
        for event in events:
            if not event.startswith(b"data: {"):
                continue
            said = json.loads(event.removeprefix(b"data: "))
            if not first_s and _text(said):
                first_s = time.perf_counter() - began_s
            tokens = (said.get("usage") or {}).get("completion_tokens", tokens)
    return Answered(tokens, first_s)


def _text(said: dict[str, Any]) -> str:
    return "".join((each.get("delta") or {}).get("content") or "" for each in said["choices"])
