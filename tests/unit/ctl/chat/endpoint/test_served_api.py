"""The way to the daemon's own endpoint, with an engine behind it that writes words."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from jupiterd.ctl.chat.endpoint.answer_chunks import Chunk, ModelFacts
from jupiterd.ctl.chat.endpoint.event_stream import Event
from jupiterd.ctl.chat.endpoint.served_api import ServedApi
from jupiterd.ctl.chat.partner import CHAT, COMPLETION
from jupiterd.daemon.serving.endpoints import Endpoints
from jupiterd.daemon.serving.local_socket import serving_socket
from jupiterd.errors import (
    BusyError,
    DaemonUnreachableError,
    EngineLostError,
    JupiterError,
    ModelNotServedError,
    UsageError,
)
from tests.support.daemon.two_nodes import until
from tests.support.serving.word_engine import WordEngine
from tests.unit.daemon.serving.test_served_names import Known

pytestmark = pytest.mark.net


@asynccontextmanager
async def served(folder: Path) -> AsyncGenerator[tuple[ServedApi, WordEngine]]:
    async with WordEngine().open() as engine, asyncio.TaskGroup() as group:
        endpoints = Endpoints(Known(), engine, lambda: None)
        async with (
            serving_socket(folder / "serve.sock", endpoints, group),
            ServedApi(folder) as api,
        ):
            yield api, engine


def asked(text: str, place: str = CHAT, model: str = "promoted") -> tuple[str, dict[str, Any]]:
    messages = [{"role": "user", "content": text}]
    return place, {
        "model": model, **({"messages": messages} if place == CHAT else {"prompt": text})
    }  # fmt: skip


async def text_of(api: ServedApi, place: str, body: dict[str, Any]) -> str:
    chunks = [told async for told in api.answer(place, body) if isinstance(told, Chunk)]
    return "".join(chunk.text for chunk in chunks)


async def test_models_are_known_by_their_names_and_folders(state_dir: Path):
    folder = state_dir / "a model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "tokenizer.json").write_text("{}")
    async with served(state_dir) as (api, _):
        assert "python/2" in await api.names()
        for name in ("promoted", "python/2", str(folder)):
            assert isinstance(await api.facts(name), ModelFacts)
        with pytest.raises(ModelNotServedError):
            await api.facts("nobody/7")


async def test_chats_and_completions_are_answered_and_counted(state_dir: Path):
    async with served(state_dir) as (api, _):
        assert await text_of(api, *asked("one two")) == "one two "
        assert await text_of(api, *asked("three", COMPLETION, "python/2")) == "three "
        told = [each async for each in api.answer(*asked("one two"))]
        counted = [each for each in told if isinstance(each, Chunk) and each.completion_tokens]
        assert [(each.prompt_tokens, each.completion_tokens) for each in counted] == [(2, 2)]


async def test_who_goes_away_ends_the_answer(state_dir: Path):
    async with served(state_dir) as (api, engine):
        async with aclosing(api.answer(*asked("hang on please"))) as answer:
            assert isinstance(await anext(answer), Chunk | Event)
        await until(lambda: engine.cancelled == 1)


@pytest.mark.parametrize(
    ("said", "error"),
    [("die after 1", EngineLostError), ("busy", BusyError), ("refuse", UsageError)],
)
async def test_errors_are_ours(state_dir: Path, said: str, error: type[JupiterError]):
    async with served(state_dir) as (api, _):
        with pytest.raises(error) as caught:
            await text_of(api, *asked(said))
        assert caught.value.hint


async def test_a_daemon_that_dies_in_the_midst_of_an_answer_is_told_with_how_to_start_it(
    state_dir: Path,
):
    """Its process is gone: the connection breaks, and nobody listens in its folder."""

    async def half_an_answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
        writer.write(head + b"Transfer-Encoding: chunked\r\n\r\n")
        writer.write(b'16\r\ndata: {"choices": []}\n\n\r\n')
        await writer.drain()
        writer.transport.abort()

    server = await asyncio.start_unix_server(half_an_answer, state_dir / "serve.sock")
    async with server, ServedApi(state_dir) as api:
        with pytest.raises(DaemonUnreachableError, match="the answer broke off, and no") as caught:
            await text_of(api, *asked("one two"))
        assert "start it with" in caught.value.hint


async def test_no_daemon_is_told_at_once(state_dir: Path):
    async with ServedApi(state_dir) as api:
        with pytest.raises(DaemonUnreachableError):
            await api.facts("promoted")
