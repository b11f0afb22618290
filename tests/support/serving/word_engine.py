"""An engine that answers over HTTP as real ones do, and writes words instead of computing any.

Owns a server on a port of its own, and what hands requests on to it. The prompt says what is to
happen: `refuse`, `die after N`, `hang`, `no usage`, `busy`, `slow`; anything else is written back.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from aiohttp import web

from jupiterd.cluster.serving.answer_request import AnswerRequest
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.daemon.serving.answering import Answer
from jupiterd.errors import BusyError, EngineLostError

DEFAULT_WORDS = 8


class WordEngine:
    """Counts what it is asked, and what became of it."""

    def __init__(self) -> None:
        self.running = 0
        self.most_running = 0
        self.cancelled = 0
        self.asked: list[Mapping[str, Any]] = []
        self.gate = asyncio.Event()
        """`slow` answers wait for it."""
        self.has_begun = asyncio.Event()
        self.url = ""

    @asynccontextmanager
    async def open(self) -> AsyncGenerator["WordEngine"]:
        """Serve on a port of its own."""
        app = web.Application()
        app.add_routes(
            [web.post("/v1/chat/completions", self._chat), web.post("/v1/completions", self._text)]
        )
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        try:
            limits = aiohttp.TCPConnector(limit=0)
            async with aiohttp.ClientSession(self.url, connector=limits) as self.session:
                yield self
        finally:
            await runner.cleanup()

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        return await self._answer(request, body, str(body["messages"][-1]["content"]))

    async def _text(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        return await self._answer(request, body, str(body["prompt"]))

    async def _answer(
        self, request: web.Request, body: Mapping[str, Any], prompt: str
    ) -> web.StreamResponse:
        self.asked.append(body)
        if prompt == "refuse":
            return web.json_response({"error": "the prompt has 9 tokens of 8"}, status=400)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        self.has_begun.set()
        try:
            return await self._written(request, body, prompt)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1

    async def _written(
        self, request: web.Request, body: Mapping[str, Any], prompt: str
    ) -> web.StreamResponse:
        if prompt == "slow":
            await self.gate.wait()
        words = [f"{word} " for word in prompt.split()][: body.get("max_tokens", DEFAULT_WORDS)]
        usage = {
            "prompt_tokens": len(prompt.split()),
            "completion_tokens": len(words),
            "total_tokens": len(prompt.split()) + len(words),
        }
        is_chat = "messages" in body
        if not body["stream"]:
            return web.json_response({**_choice(is_chat, "".join(words), "stop"), "usage": usage})
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        died = re.fullmatch(r"die after (\d+)", prompt)
        for number, word in enumerate(words):
            if died and number == int(died[1]):
                request.transport.abort()
            await response.write(_event(_choice(is_chat, word, None, is_streamed=True)))
            if prompt.startswith("hang"):
                await asyncio.Event().wait()
        last = _choice(is_chat, "", "stop", is_streamed=True)
        if prompt != "no usage":
            last["usage"] = usage
        await response.write(_event(last) + b"data: [DONE]\n\n")
        return response

    @asynccontextmanager
    async def answering(self, model: ServedModel, request: AnswerRequest) -> AsyncGenerator[Answer]:
        """Hand a request on, as the pool of engines does."""
        path = "/v1/chat/completions" if request.is_chat else "/v1/completions"
        body = {**request.body, "model": f"/folder/of/{model.name}"}
        if "busy" in json.dumps(body):
            raise BusyError("a training has the GPU", retry_after_s=7)
        async with self.session.post(path, json=body) as response:
            yield Answer(response.status, response.content_type, _pieces(response))


async def _pieces(response: aiohttp.ClientResponse) -> AsyncGenerator[bytes]:
    try:
        async for piece in response.content.iter_any():
            yield piece
    except aiohttp.ClientError as error:
        raise EngineLostError("the engine died while it wrote") from error


def _choice(
    is_chat: bool, text: str, finish: str | None, *, is_streamed: bool = False
) -> dict[str, Any]:
    said: dict[str, Any] = {"index": 0, "finish_reason": finish}
    if is_chat:
        said["delta" if is_streamed else "message"] = {"role": "assistant", "content": text}
    else:
        said["text"] = text
    kind = "chat.completion" if is_chat else "text_completion"
    kind += ".chunk" if is_chat and is_streamed else ""
    return {"id": "w-1", "object": kind, "created": 1, "model": "/folder", "choices": [said]}


def _event(said: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(said).encode() + b"\n\n"
