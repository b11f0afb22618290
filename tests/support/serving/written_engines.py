"""Engines that write what is agreed on with the test: each token names the model that wrote it.

Owns how fast they write, load and fail. There is no model: what passes answers on doesn't know one.
"""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from jupiterd.cluster.serving.answer_request import AnswerRequest
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.daemon.serving.answering import Answer
from jupiterd.errors import EngineLostError, JupiterError, OutOfMemoryError

NO_ROOM = OutOfMemoryError("there is no room for it")
"""Why a model can't be loaded just now."""

EVENTS, JSON = "text/event-stream", "application/json"


def chat(max_tokens: int = 3, *, is_streamed: bool = True, **more: Any) -> AnswerRequest:
    body = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": max_tokens, **more}
    return AnswerRequest(is_chat=True, body=body, is_streamed=is_streamed)


def event(model: ServedModel, number: int) -> bytes:
    """Return one token; it says which model and which process wrote it."""
    delta = {"content": f"{number} of {model.artifact} by {os.getpid()}\n"}
    said = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]}
    return f"data: {json.dumps(said)}\n\n".encode()


@dataclass
class WrittenEngines:
    """A pool of engines; `HoldsEngines`."""

    token_s: float = 0.0
    load_s: float = 0.0
    refuses: Callable[[ServedModel], JupiterError | None] = lambda _: None
    """Says why a request isn't taken."""
    broken: dict[ServedModel, JupiterError] = field(default_factory=dict[ServedModel, JupiterError])
    """Models that can't be loaded, and why."""
    held: dict[ServedModel, bool] = field(default_factory=dict[ServedModel, bool])
    """Model -> whether it can answer."""
    running: list[ServedModel] = field(default_factory=list[ServedModel])
    ended: list[str] = field(default_factory=list[str])
    """How each answer ended here: whole or cut."""
    asked: list[AnswerRequest] = field(default_factory=list[AnswerRequest])

    async def load(self, model: ServedModel) -> None:
        self.held.setdefault(model, False)
        await asyncio.sleep(self.load_s)
        if (error := self.broken.get(model)) is not None:
            self.held.pop(model, None)
            raise error
        self.held[model] = True

    async def unload(self, model: ServedModel) -> None:
        self.held.pop(model, None)
        await asyncio.sleep(0)

    async def close(self) -> None:
        self.held.clear()

    def ready(self) -> Sequence[ServedModel]:
        return [model for model, is_ready in self.held.items() if is_ready]

    def loading(self) -> Sequence[ServedModel]:
        return [model for model, is_ready in self.held.items() if not is_ready]

    @asynccontextmanager
    async def answering(self, model: ServedModel, request: AnswerRequest) -> AsyncGenerator[Answer]:
        self.asked.append(request)
        if (error := self.refuses(model)) is not None:
            raise error
        if not self.held.get(model):
            await self.load(model)
        self.running.append(model)
        over = asyncio.Event()
        kind = EVENTS if request.is_streamed else JSON
        try:
            left_out = "tools" if request.body.get("tools") else ""
            yield Answer(200, kind, _noted(self._chunks(model, request), over), left_out)
        finally:
            self.running.remove(model)
            self.ended.append("whole" if over.is_set() else "cut")

    async def _chunks(self, model: ServedModel, request: AnswerRequest) -> AsyncGenerator[bytes]:
        count = int(request.body["max_tokens"])
        if not request.is_streamed:
            await asyncio.sleep(self.token_s * count)
            usage = {"completion_tokens": count}
            yield json.dumps({"of": model.artifact, "usage": usage}).encode()
            return
        for number in range(count):
            await asyncio.sleep(self.token_s)
            if model not in self.held:
                raise EngineLostError("the engine died")
            yield event(model, number)
        yield b"data: [DONE]\n\n"


async def _noted(chunks: AsyncGenerator[bytes], over: asyncio.Event) -> AsyncGenerator[bytes]:
    async for chunk in chunks:
        yield chunk
    over.set()
