"""The dashboard in a browser."""

import asyncio
import re
import shutil
import socket
import sys
from contextlib import asynccontextmanager

import aiohttp
import pytest
from yarl import URL

from jupiter_tui.model.recorder import Recorder
from jupiter_tui.web.server import HOST, without_serve
from tests.support.tui.documents import messages

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
async def served(folder, said=None):
    """Serve a recording; yield the address that it prints; `said` takes what it prints later."""
    recorder = Recorder(folder / "run.jsonl")
    for message in messages(3):
        recorder.take("status", message, 0.0)
    with socket.create_server((HOST, 0)) as free:
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "jupiter_tui.main", "--serve", str(port)),
        *("--replay", str(folder / "run.jsonl")),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL if said is None else asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(WAIT_S):
            printed = (await process.stdout.readline()).decode().split()
            while not await _answers(port):  # noqa: ASYNC110 - it is printed just before
                await asyncio.sleep(0.1)
        assert printed[0] == "open"
        yield URL(printed[1])
    finally:
        process.terminate()
        if said is not None:
            said.append((await process.stdout.read()).decode())
        await process.wait()


async def _answers(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(HOST, port)
    except OSError:
        return False
    writer.close()
    return True


async def test_a_visitor_gets_a_page_and_a_dashboard_of_its_own(tmp_path):
    jar = aiohttp.CookieJar(unsafe=True)
    async with served(tmp_path) as address, aiohttp.ClientSession(cookie_jar=jar) as session:
        async with session.get(address) as page:
            assert "textual" in await page.text()
            assert "key" not in page.url.query
        url = address.with_path("/ws").with_query(width=120, height=40)
        async with asyncio.timeout(WAIT_S), session.ws_connect(url) as talk:
            heard = b""
            while b"node-3" not in heard:
                message = await talk.receive()
                assert message.type not in (aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR)
                heard += message.data if isinstance(message.data, bytes) else b""


async def test_the_page_loads_nothing_from_elsewhere_and_no_key_is_logged(tmp_path):
    jar, said = aiohttp.CookieJar(unsafe=True), []
    async with served(tmp_path, said) as address, aiohttp.ClientSession(cookie_jar=jar) as session:
        async with session.get(address) as page:
            text, policy = await page.text(), page.headers["Content-Security-Policy"]
        assert re.findall(r"""(?:src|href)=["'](?!/|http://127\.0\.0\.1)[^"']*""", text) == []
        assert "googleapis" not in text
        assert "xterm.css" in text
        assert policy.startswith("default-src 'self';")
        (font,) = re.findall(r'url\("(/static/fonts/[^"]*)"\)', text)
        async with session.get(address.origin().join(URL(font))) as answer:
            assert answer.status == 200
        key = address.query["key"]
    assert key not in said[0]


async def test_who_has_not_the_printed_address_gets_nothing(tmp_path):
    async with served(tmp_path) as address, aiohttp.ClientSession() as session:
        for path in ("/", "/ws", "/static/js/textual.js", "/?key=guess"):
            async with session.get(address.origin().join(URL(path))) as answer:
                assert answer.status == 403, path


async def test_a_page_of_another_origin_gets_nothing_even_with_the_key(tmp_path):
    async with served(tmp_path) as address, aiohttp.ClientSession() as session:
        for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}):
            async with session.get(address, headers=headers) as answer:
                assert answer.status == 403, headers


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
async def test_chromium_shows_it(tmp_path):
    async with served(tmp_path) as address, browsing(tmp_path, address) as page:
        async with asyncio.timeout(WAIT_S):
            while not await asked(page, HAS_BEGUN):  # noqa: ASYNC110 - the page tells nobody
                await asyncio.sleep(0.1)


HAS_BEGUN = "document.body.classList.contains('-first-byte')"
"""Whether the dashboard has drawn anything; what it draws is a canvas, of which nothing is read."""


@asynccontextmanager
async def browsing(folder, address):
    """Open the page in a browser without a window; yield a connection to its developer tools."""
    browser = await asyncio.create_subprocess_exec(
        *(str(CHROMIUM), "--headless=new", "--no-sandbox", "--disable-gpu"),
        *(f"--user-data-dir={folder / 'profile'}", "--remote-debugging-port=0"),
        *("--window-size=1200,800", str(address)),
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
