"""`jupiterctl model serve` against a real socket for models."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from anyio.from_thread import start_blocking_portal

from jupiterd.daemon.serving.endpoints import Endpoints
from jupiterd.daemon.serving.local_socket import serving_socket
from jupiterd.locations import SERVE_SOCKET
from tests.support.serving.word_engine import WordEngine
from tests.support.workers.tiny_models import write_model
from tests.unit.daemon.serving.test_served_names import Known

pytestmark = pytest.mark.net

SHALLOW = b'{"model_type": "llama", "num_hidden_layers": 7}'
"""The config.json of another model."""


@asynccontextmanager
async def serving(state_dir: Path) -> AsyncGenerator[None]:
    async with WordEngine().open() as engine, asyncio.TaskGroup() as group:
        endpoints = Endpoints(Known(), engine, lambda: None)
        async with serving_socket(state_dir / SERVE_SOCKET, endpoints, group):
            yield


@pytest.fixture
def models(state_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Answer on the socket of the state folder, in a thread."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(serving(state_dir)),
    ):
        yield


@contextmanager
def running(state_dir: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run the command as a process of its own; end it for certain."""
    command = [sys.executable, "-m", "jupiterd.ctl.main", "--state-dir", str(state_dir)]
    with subprocess.Popen(
        [*command, "model", "serve", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def line_of(process: subprocess.Popen[str]) -> Any:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def test_an_endpoint_is_open_until_ctrl_c_and_each_request_is_told(models, state_dir: Path):
    with running(state_dir, "python/2", "--port", "0", "-o", "jsonl") as process:
        opened = line_of(process)["endpoint"]
        assert opened["models"] == ["python/2"]
        body = {"model": "python/2", "prompt": "one two"}
        answer = httpx.post(f"{opened['url']}/completions", json=body)
        assert answer.json()["choices"][0]["text"] == "one two "
        request = line_of(process)["request"]
        assert (request["model"], request["status"]) == ("python/2", 200)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
        assert (process.returncode, said) == (0, "jupiterctl: the endpoint is closed\n")
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{opened['url']}/models")


def test_an_endpoint_ends_with_its_command_however_that_ends(models, state_dir: Path):
    with running(state_dir, "--port", "0", "-o", "jsonl") as process:
        url = line_of(process)["endpoint"]["url"]
        process.kill()
        process.wait()
    while True:
        try:
            httpx.get(f"{url}/models")
        except httpx.TransportError:
            break


def test_a_dry_run_says_what_would_answer(models, ctl: Callable[..., Any]):
    ran = ctl("model", "serve", "promoted", "python/2", "--dry-run", "--port", "0")
    assert ran.exit_code == 0
    assert "promoted, python/2 would answer at http://127.0.0.1:0/v1" in ran.out


@pytest.mark.parametrize(
    ("arguments", "exit_code", "line"),
    [
        (("nobody",), 6, "there is no model nobody"),
        (("--host", "0.0.0.0"), 5, "could be used by whoever reaches that port"),
        (("--token", "/nowhere/token"), 2, "no token can be read from /nowhere/token"),
        (("--cors", "example"), 2, "'example' is no origin of pages"),
        (("--port", "70000"), 2, "70000"),
    ],
)
def test_what_can_not_be_served_is_one_line_and_a_hint(
    models, ctl: Callable[..., Any], arguments: tuple[str, ...], exit_code: int, line: str
):
    ran = ctl("model", "serve", *arguments, "--dry-run")
    assert ran.exit_code == exit_code
    assert line in ran.err.splitlines()[0]
    assert "hint: " in ran.err


@pytest.mark.parametrize(
    ("file", "content", "exit_code", "line"),
    [
        ("model.safetensors", b"", 1, "m can't be loaded: model.safetensors is cut off"),
        ("config.json", b"{", 1, "m has no config.json that can be read"),
        ("config.json", SHALLOW, 1, "m can't be loaded: its weights "),
        ("tokenizer.json", b"{", 1, "m can't be loaded: tokenizer.json can't be read"),
        ("tokenizer.json", None, 6, "it has no tokenizer"),
    ],
)
@pytest.mark.parametrize("how", [("--dry-run",), ()], ids=["dry run", "in earnest"])
def test_a_folder_that_no_engine_can_load_is_refused_before_anything_listens(
    models, ctl, tmp_path: Path, how: tuple[str, ...], file, content, exit_code: int, line: str
):
    folder = write_model(tmp_path / "m", "llama")
    if content is None:
        (folder / file).unlink()
    else:
        (folder / file).write_bytes(content)
    ran = ctl("model", "serve", str(folder), "--port", "0", *how)
    assert (ran.exit_code, ran.out) == (exit_code, "")
    assert line in ran.err.splitlines()[0]
    assert "hint: " in ran.err


def test_two_on_one_port_are_refused(models, state_dir: Path, ctl: Callable[..., Any]):
    with running(state_dir, "--port", "0", "-o", "jsonl") as process:
        port = httpx.URL(line_of(process)["endpoint"]["url"]).port
        ran = ctl("model", "serve", "--port", str(port))
        assert ran.exit_code == 7
        assert f"another program listens at 127.0.0.1:{port}" in ran.err


def test_without_a_daemon_it_says_so(ctl: Callable[..., Any]):
    ran = ctl("model", "serve")
    assert ran.exit_code == 3


def test_a_daemon_that_ends_ends_the_command_too(state_dir: Path):
    with start_blocking_portal() as portal:
        with portal.wrap_async_context_manager(serving(state_dir)):
            shown = running(state_dir, "--port", "0", "-o", "jsonl")
            process = shown.__enter__()
            line_of(process)
        _, said = process.communicate(timeout=20)
        shown.__exit__(None, None, None)
    assert process.returncode == 3
    assert "no jupiterd answers" in said


@pytest.mark.parametrize(
    "arguments",
    [["caf\udce9"], ["--host", "caf\udce9"], ["--token", "caf\udce9"], ["--cors", "caf\udce9"]],
)
def test_bytes_that_are_no_text_are_told_as_any_wrong_name(models, ctl, arguments):
    ran = ctl("model", "serve", *arguments, "--port", "0", "--dry-run")
    assert ran.exit_code in {2, 5, 6}
    assert "xe9" in ran.err
