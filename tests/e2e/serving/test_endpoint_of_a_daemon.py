"""A real daemon's ways to its models: its own socket, its settings, and `model serve`."""

import asyncio
import os
import stat
from pathlib import Path

import httpx
import pytest

from jupiterd.client.socket_path import SocketPath
from jupiterd.locations import SERVE_SOCKET
from tests.support.daemon.two_nodes import until
from tests.support.daemons.cluster import NAMES, Daemon, running
from tests.support.serving.served_command import served_command

pytestmark = [pytest.mark.net, pytest.mark.timeout(180)]

TOKEN = "0123456789abcdef" * 2
HERE = "http://127.0.0.1:"
CLOSED_WITHIN_S = 2.0
HELLO = {"model": "promoted", "prompt": "hello"}


def locally(daemon: Daemon, path: SocketPath) -> httpx.AsyncClient:
    transport = httpx.AsyncHTTPTransport(uds=str(path.short))
    return httpx.AsyncClient(transport=transport, base_url="http://jupiterd", timeout=60)


async def ask_for_ever(client: httpx.AsyncClient) -> None:
    while True:
        await client.get("/models")


def port_in(log: Path) -> int | None:
    """Return the port that a daemon says its models answer at; None: it doesn't yet."""
    said = (line for line in log.read_text(errors="replace").splitlines() if HERE in line)
    ports = [line.partition(HERE)[2].partition("/")[0] for line in said if "models_served" in line]
    return int(ports[0]) if ports else None


async def test_a_daemon_serves_as_its_settings_say(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    said = {"JUPITER_SERVE_PORT": "0", "JUPITER_SERVE_TOKEN": str(token)}
    daemon = Daemon(tmp_path, NAMES[0], environment=said)
    async with running([daemon]) as cluster:
        await cluster.meet()
        await until(lambda: port_in(daemon.log) is not None)
        async with httpx.AsyncClient(base_url=f"{HERE}{port_in(daemon.log)}") as client:
            assert (await client.get("/v1/models")).status_code == 401
            client.headers["Authorization"] = f"Bearer {TOKEN}"
            assert (await client.get("/v1/models")).json()["data"] == []
            refused = await client.post("/v1/completions", json=HELLO)
            assert refused.status_code == 404
            assert refused.json()["error"]["code"] == "model_not_found"
            assert "jupiterctl cycle start" in refused.json()["error"]["message"]
            assert "<html" in (await client.get("/")).text


async def test_an_endpoint_that_others_could_use_keeps_a_daemon_from_starting(
    tmp_path: Path,
) -> None:
    daemon = Daemon(tmp_path, NAMES[0], environment={"JUPITER_SERVE_HOST": "0.0.0.0"})
    daemon.start()
    assert daemon.process is not None
    assert await asyncio.to_thread(daemon.process.wait, 60) == 5
    assert "could be used by whoever reaches that port" in daemon.log.read_text()


async def test_jupiterctl_opens_an_endpoint_and_ctrl_c_closes_it(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path, NAMES[0])
    async with running([daemon]) as cluster:
        await cluster.meet()
        with SocketPath(daemon.state_dir, SERVE_SOCKET) as path:
            mode = os.stat(path.socket).st_mode  # noqa: PTH116 - a socket
            assert stat.S_IMODE(mode) == 0o600
            async with locally(daemon, path) as client:
                assert (await client.get("/v1/models")).json()["data"] == []
                assert (await client.post("/v1/completions", json=HELLO)).status_code == 404
        async with served_command(daemon.state_dir) as serving:
            assert list(serving.opened["missing"]) == ["promoted"]
            async with httpx.AsyncClient(base_url=serving.url) as client:
                assert (await client.post("/completions", json=HELLO)).status_code == 404
                request = await serving.next_request()
                assert (request["model"], request["status"]) == ("promoted", 404)
                assert await serving.interrupt() == 0
                # The daemon hears of it a moment after jupiterctl has ended.
                async with asyncio.timeout(CLOSED_WITHIN_S):
                    with pytest.raises(httpx.TransportError):
                        await ask_for_ever(client)
