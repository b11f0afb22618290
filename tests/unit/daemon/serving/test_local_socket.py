"""This machine's own socket for models: its owner, its first caller, and `serve`."""

import asyncio
import json
import socket
import stat
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from jupiterd.daemon.serving import local_socket
from jupiterd.daemon.serving.endpoints import Endpoints
from jupiterd.daemon.serving.local_socket import serving_socket
from jupiterd.errors import from_wire
from tests.support.daemon.two_nodes import until
from tests.support.serving.word_engine import WordEngine
from tests.unit.daemon.serving.test_served_names import Known

pytestmark = pytest.mark.net

SERVE = "/jupiter/serve"


@asynccontextmanager
async def local(folder: Path) -> AsyncGenerator[tuple[httpx.AsyncClient, Endpoints]]:
    """Serve on a socket in a folder, with a client of it."""
    path = folder / "serve.sock"
    async with WordEngine().open() as engine, asyncio.TaskGroup() as group:
        endpoints = Endpoints(Known(), engine, lambda: None)
        async with serving_socket(path, endpoints, group):
            transport = httpx.AsyncHTTPTransport(uds="serve.sock")
            async with httpx.AsyncClient(
                transport=transport, base_url="http://jupiter", timeout=30
            ) as client:
                yield client, endpoints


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


async def test_only_its_owner_may_open_it_and_it_goes_with_the_daemon(tmp_path: Path):
    async with local(tmp_path):
        assert stat.S_IMODE((tmp_path / "serve.sock").stat().st_mode) == 0o600
    assert not (tmp_path / "serve.sock").exists()


async def test_the_first_caller_is_answered_and_those_that_came_with_it(tmp_path: Path):
    async with local(tmp_path) as (client, _):
        asked = [client.get("/v1/models") for _ in range(20)]
        for answer in await asyncio.gather(*asked):
            assert [row["id"] for row in answer.json()["data"]] == [
                "promoted",
                "python/2",
                "python/1",
            ]


async def test_a_caller_that_goes_at_once_keeps_nobody_from_being_answered(tmp_path: Path):
    async with local(tmp_path) as (client, _):
        with socket.socket(socket.AF_UNIX) as gone:
            gone.connect("serve.sock")
        assert (await client.get("/health")).status_code == 200


async def test_where_the_server_can_not_be_loaded_callers_are_hung_up_on_and_the_daemon_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(local_socket, "PAUSE_S", 0.01)
    with monkeypatch.context() as broken:
        broken.setattr(local_socket, "SERVER", "jupiterd.nowhere")
        async with local(tmp_path) as (client, _):
            for _ in range(2):
                with pytest.raises(httpx.TransportError):
                    await client.get("/health")
            broken.undo()
            assert (await client.get("/health")).status_code == 200
    assert "models_not_served" in caplog.text


async def test_folders_answer_here_without_a_token(tmp_path: Path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    (tmp_path / "model" / "model.safetensors").touch()
    (tmp_path / "model" / "tokenizer.json").touch()
    async with local(tmp_path) as (client, _):
        body = {"model": str(tmp_path / "model"), "prompt": "one two"}
        answer = await client.post("/v1/completions", json=body)
        assert answer.json()["choices"][0]["text"] == "one two "


async def told(client: httpx.AsyncClient, **wanted: Any) -> Any:
    """Return the only line that is told of an endpoint that isn't opened."""
    (line,) = (await client.post(SERVE, json=wanted)).text.splitlines()
    return json.loads(line)


async def test_an_endpoint_lasts_as_long_as_whoever_asked_for_it_listens(tmp_path: Path):
    async with local(tmp_path) as (client, endpoints):
        wanted = {"models": ["python/2", "base"], "port": 0, "pinned": True}
        async with client.stream("POST", SERVE, json=wanted) as response:
            lines = response.aiter_lines()
            opened = json.loads(await anext(lines))["endpoint"]
            assert opened["models"] == ["python/2", "base"]
            assert list(opened["missing"]) == ["base"]
            assert endpoints.models == {"python/2", "base"}
            assert endpoints.is_pinned
            async with httpx.AsyncClient() as outside:
                body = {"model": "python/2", "prompt": "one"}
                answer = await outside.post(f"{opened['url']}/completions", json=body)
                assert answer.json()["model"] == "python/2"
            assert json.loads(await anext(lines))["request"]["model"] == "python/2"
            second = await told(client, port=httpx.URL(opened["url"]).port)
            assert second["error"]["code"] == "port-in-use"
        async with asyncio.timeout(1):
            await until(lambda: not endpoints.models)
        async with httpx.AsyncClient() as outside:
            with pytest.raises(httpx.ConnectError):
                await outside.get(f"{opened['url']}/models")


async def test_a_dry_run_opens_nothing(tmp_path: Path):
    async with local(tmp_path) as (client, endpoints):
        found = (await told(client, port=0, dry_run=True))["endpoint"]
        assert (found["models"], found["missing"]) == (["promoted"], {})
        assert not endpoints.models


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        ({"host": "0.0.0.0", "port": 0}, "refused"),
        ({"host": "192.0.2.1", "token": "token"}, "invalid-setting"),
        ({"host": "a" * 100, "token": "token"}, "invalid-setting"),
        ({"token": "/nowhere"}, "invalid-setting"),
        ({"port": 65536}, "invalid-setting"),
        ({"port": "x"}, "invalid-setting"),
        ({"cors": ["nowhere"]}, "invalid-setting"),
        ({"models": "promoted"}, "invalid-setting"),
        ({"models": ["promoted", "nobody"]}, "model-not-served"),
    ],
)
async def test_what_can_not_be_opened_is_one_line_and_a_hint(
    tmp_path: Path, wanted: dict[str, Any], code: str
):
    (tmp_path / "token").write_text("a0" * 16)
    (tmp_path / "token").chmod(0o600)
    async with local(tmp_path) as (client, _):
        error = (await told(client, **wanted, dry_run=True))["error"]
        assert error["code"] == code
        assert from_wire(**error).hint


async def test_what_is_no_wish_is_refused(tmp_path: Path):
    async with local(tmp_path) as (client, _):
        for body in (b"{", b"[]"):
            assert (await client.post(SERVE, content=body)).status_code == 400
