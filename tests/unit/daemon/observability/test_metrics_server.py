"""The server of metrics: what it costs where it can't serve, and that it never costs more."""

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from jupiterd.daemon.app.node import Node
from jupiterd.daemon.observability import metrics_server
from jupiterd.daemon.observability.metrics_reading import MetricsReader
from jupiterd.daemon.observability.metrics_server import MAX_REQUESTS, serve_metrics
from jupiterd.ports import Address
from tests.support.daemon.two_nodes import TIMEOUT_S, serving, until

pytestmark = pytest.mark.net

FREE = Address("127.0.0.1", 0)


@asynccontextmanager
async def offered(node: Node, address: Address = FREE) -> AsyncGenerator[None]:
    """Serve a node's metrics meanwhile."""
    task = asyncio.ensure_future(serve_metrics(node.observers.sources, address))
    try:
        yield
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.wait([task])


def lines(caplog: pytest.LogCaptureFixture, event: str) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.getMessage() == event]


async def where(caplog: pytest.LogCaptureFixture) -> str:
    await until(lambda: bool(lines(caplog, "metrics_served")))
    return str(vars(lines(caplog, "metrics_served")[-1])["url"])


@pytest.fixture(autouse=True)
def _heard(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="jupiterd")


async def test_a_port_in_use_costs_one_line_and_is_taken_once_it_is_free(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics_server, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(metrics_server, "LONGEST_PAUSE_S", 0.02)
    tries = 0

    class Counted(metrics_server._Server):
        def __init__(self, *told: object) -> None:
            nonlocal tries
            tries += 1
            super().__init__(*told)

    monkeypatch.setattr(metrics_server, "_Server", Counted)
    async with serving(tmp_path, "one") as node:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            task = asyncio.ensure_future(
                serve_metrics(node.observers.sources, Address("127.0.0.1", port))
            )
            await until(lambda: tries > 3)
            (line,) = lines(caplog, "metrics_not_served")
            assert "in use" in vars(line)["reason"]
        assert await where(caplog) == f"http://127.0.0.1:{port}/metrics"
        task.cancel()
        await asyncio.wait([task])


async def test_listening_beyond_loopback_is_warned_of_and_loopback_isnt(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path, "one") as node:
        async with offered(node):
            await where(caplog)
        assert not lines(caplog, "metrics_beyond_loopback")
        async with offered(node, Address("0.0.0.0", 0)):
            await until(lambda: bool(lines(caplog, "metrics_beyond_loopback")))


async def test_a_reading_that_fails_fails_the_scrape_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = MetricsReader.read

    async def broken(_: MetricsReader) -> None:
        raise RuntimeError("no reading")

    async with serving(tmp_path, "one") as node, httpx.AsyncClient(timeout=TIMEOUT_S) as client:
        monkeypatch.setattr(MetricsReader, "read", broken)
        async with offered(node):
            url = await where(caplog)
            assert [(await client.get(url)).status_code for _ in range(2)] == [500, 500]
        assert len(lines(caplog, "metrics_not_read")) == 1
        caplog.clear()
        monkeypatch.setattr(MetricsReader, "read", read)
        async with offered(node):
            text = (await client.get(await where(caplog))).text
        assert "jupiter_build_info" in text


async def test_who_asks_for_nothing_holds_up_neither_others_nor_the_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path, "one") as node, httpx.AsyncClient(timeout=TIMEOUT_S) as client:
        async with offered(node):
            url = await where(caplog)
            host, port = urlsplit(url).hostname, urlsplit(url).port
            silent = [await asyncio.open_connection(host, port) for _ in range(MAX_REQUESTS - 1)]
            assert (await client.get(url)).status_code == 200
            crowd = await asyncio.open_connection(host, port)
            hung_up = await asyncio.open_connection(host, port)
            assert await asyncio.wait_for(hung_up[0].read(), TIMEOUT_S) == b""
        for _, writer in (*silent, crowd, hung_up):
            writer.close()


async def test_warnings_are_counted_by_their_event(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        serving(tmp_path, "one") as node,
        httpx.AsyncClient(timeout=TIMEOUT_S) as client,
        offered(node),
    ):
        url = await where(caplog)
        for _ in range(2):
            logging.getLogger("jupiterd.daemon").warning("copy_not_made", extra={"n": 1})
        logging.getLogger("jupiterd.daemon").info("copy_made")
        text = (await client.get(url)).text
    assert 'jupiter_errors_total{code="copy_not_made"} 2.0' in text
    assert "copy_made" not in text
