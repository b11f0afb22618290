"""The dashboard in a browser."""

import asyncio
import shutil
import socket
import sys
from contextlib import asynccontextmanager

import aiohttp
import pytest

from jupiter_tui.recorder import Recorder
from jupiter_tui.serving import HOST, without_serve
from tests.tui.documents import messages

WAIT_S = 50.0
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


@pytest.mark.parametrize(
    ("given", "left"),
    [
        (["--serve", "--ascii"], ["--ascii"]),
        (["--serve", "8000", "--readonly"], ["--readonly"]),
        (["--state-dir", "x", "--serve=8000"], ["--state-dir", "x"]),
    ],
)
def test_a_visitor_s_dashboard_has_the_same_options(given, left):
    assert without_serve(given) == left


@asynccontextmanager
async def served(folder):
    """Serve a recording; yield the port."""
    recorder = Recorder(folder / "run.jsonl")
    for message in messages(3):
        recorder.take("status", message, 0.0)
    with socket.create_server((HOST, 0)) as free:
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "jupiter_tui.main", "--serve", str(port)),
        *("--replay", str(folder / "run.jsonl")),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(WAIT_S):
            while not await _answers(port):  # noqa: ASYNC110 - it tells nobody when it is ready
                await asyncio.sleep(0.1)
        yield port
    finally:
        process.terminate()
        await process.wait()


async def _answers(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(HOST, port)
    except OSError:
        return False
    writer.close()
    return True


async def test_a_visitor_gets_a_page_and_a_dashboard_of_its_own(tmp_path):
    async with served(tmp_path) as port, aiohttp.ClientSession() as session:
        async with session.get(f"http://{HOST}:{port}/") as page:
            assert "textual" in await page.text()
        url = f"ws://{HOST}:{port}/ws?width=120&height=40"
        async with asyncio.timeout(WAIT_S), session.ws_connect(url) as talk:
            heard = b""
            while b"node-3" not in heard:
                message = await talk.receive()
                assert message.type not in (aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR)
                heard += message.data if isinstance(message.data, bytes) else b""


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
async def test_chromium_shows_it(tmp_path):
    async with served(tmp_path) as port, browsing(tmp_path, port) as page:
        async with asyncio.timeout(WAIT_S):
            while not await asked(page, HAS_BEGUN):  # noqa: ASYNC110 - the page tells nobody
                await asyncio.sleep(0.1)


HAS_BEGUN = "document.body.classList.contains('-first-byte')"
"""Whether the dashboard has drawn anything; what it draws is a canvas, of which nothing is read."""


@asynccontextmanager
async def browsing(folder, port):
    """Open the page in a browser without a window; yield a connection to its developer tools."""
    browser = await asyncio.create_subprocess_exec(
        *(str(CHROMIUM), "--headless=new", "--no-sandbox", "--disable-gpu"),
        *(f"--user-data-dir={folder / 'profile'}", "--remote-debugging-port=0"),
        *("--window-size=1200,800", f"http://{HOST}:{port}/"),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(WAIT_S), aiohttp.ClientSession() as session:
            said = b""
            while not said.startswith(b"DevTools listening"):
                said = await browser.stderr.readline()
            tools = said.split()[-1].decode().removeprefix("ws://").partition("/")[0]
            async with session.get(f"http://{tools}/json") as listed:
                pages = [each for each in await listed.json() if each["type"] == "page"]
            async with session.ws_connect(pages[0]["webSocketDebuggerUrl"]) as page:
                yield page
    finally:
        browser.terminate()
        await browser.wait()


async def asked(page, expression):
    """Return what an expression is in the page."""
    params = {"expression": expression, "returnByValue": True}
    await page.send_json({"id": 1, "method": "Runtime.evaluate", "params": params})
    return (await page.receive_json())["result"]["result"].get("value")
