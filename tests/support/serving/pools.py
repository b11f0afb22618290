"""A pool of engines as a daemon has one, with a state folder of its own.

Owns putting it together, and asking it. Doesn't know models.
"""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupiterd.cluster.serving.answer_request import AnswerRequest
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.daemon.runtime.state_dir import StateDir
from jupiterd.daemon.serving.engine_pool import EnginePool, PoolOptions
from jupiterd.daemon.serving.engines.engine_devices import EngineDevices
from jupiterd.processes.device_loans import DeviceLoans
from jupiterd.processes.thread_shares import ThreadShares
from jupiterd.store.artifacts import ArtifactStore

MACHINE = Hardware("Linux", "x86_64", "a processor", 2, 16 << 30)


@asynccontextmanager
async def open_pool(
    root: Path, options: PoolOptions | None = None, devices: EngineDevices | None = None
) -> AsyncGenerator[EnginePool]:
    """Open a pool; leaving the context ends all of its engines."""
    state = StateDir.open(root / "state")
    found = devices or EngineDevices(
        MACHINE, DeviceLoans(root / "devices"), folder=root / "devices"
    )
    try:
        async with asyncio.TaskGroup() as group:
            store = ArtifactStore(state.store)
            pool = EnginePool(state, store, found, ThreadShares(), group, options or PoolOptions())
            try:
                yield pool
            finally:
                await pool.close()
    finally:
        state.close()


def in_folder(folder: Path, name: str = "tiny") -> ServedModel:
    """Return a model that is a folder of this machine."""
    return ServedModel(name, None, str(folder))


def chat(text: str, *, is_streamed: bool = True, **fields: object) -> AnswerRequest:
    """Return a request of one message; temperature 0 unless another is given."""
    messages = [{"role": "user", "content": text}]
    body = {"messages": messages, "temperature": 0.0, **fields}
    return AnswerRequest(is_chat=True, body=body, is_streamed=is_streamed)


def completion(prompt: object, *, is_streamed: bool = False, **fields: object) -> AnswerRequest:
    """Return a request that goes on with a text."""
    body = {"prompt": prompt, "temperature": 0.0, **fields}
    return AnswerRequest(is_chat=False, body=body, is_streamed=is_streamed)


@dataclass(frozen=True)
class Heard:
    """A whole answer."""

    status: int
    content_type: str
    data: bytes

    @property
    def documents(self) -> list[dict[str, Any]]:
        """Return the JSON of the answer, or of each of its events."""
        if self.content_type == "application/json":
            return [json.loads(self.data)]
        lines = (line.removeprefix(b"data: ") for line in self.data.splitlines())
        return [json.loads(line) for line in lines if line.startswith(b"{")]

    @property
    def text(self) -> str:
        """Return what was written."""
        choices = [choice for each in self.documents for choice in each.get("choices", ())]
        return "".join(map(_text_of, choices))

    @property
    def tokens(self) -> int:
        """Return how many tokens the engine says it wrote."""
        told = [each["usage"] for each in self.documents if each.get("usage")]
        return int(told[-1]["completion_tokens"]) if told else 0


async def heard(pool: EnginePool, model: ServedModel, request: AnswerRequest) -> Heard:
    """Return an answer to its end."""
    async with pool.answering(model, request) as answer:
        data = b"".join([chunk async for chunk in answer.chunks])
        return Heard(answer.status, answer.content_type, data)


def _text_of(choice: dict[str, Any]) -> str:
    said = choice.get("message") or choice.get("delta") or {}
    return str(said.get("content") or choice.get("text") or "")
