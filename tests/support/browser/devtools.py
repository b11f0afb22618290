"""The DevTools protocol, as far as tests of pages need it.

Owns the calls, their answers, and the events of one tab, kept in order. Doesn't know which pages
are looked at. https://chromedevtools.github.io/devtools-protocol
"""

import asyncio
import base64
import itertools
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp

MOST_BYTES = 64 << 20
WAIT_S = 20.0
_KEYS = {"Enter": (13, "\r"), "Escape": (27, ""), "Tab": (9, "")}
_SHIFT = 8


@dataclass
class Tab:
    """One tab with a profile of its own."""

    socket: aiohttp.ClientWebSocketResponse
    session: str = ""
    events: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    _numbers: Any = field(default_factory=lambda: itertools.count(1))
    _waiting: dict[int, asyncio.Future[dict[str, Any]]] = field(
        default_factory=dict[int, "asyncio.Future[dict[str, Any]]"]
    )

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol; return its result."""
        number = next(self._numbers)
        self._waiting[number] = answer = asyncio.get_running_loop().create_future()
        said = {"id": number, "method": method, "params": parameters}
        await self.socket.send_json(said | ({"sessionId": self.session} if self.session else {}))
        told = await answer
        assert "error" not in told, (method, told["error"])
        return told["result"]

    async def listen(self) -> None:
        """Take what comes, until the socket is closed."""
        async for message in self.socket:
            told = json.loads(message.data)
            if waiting := self._waiting.pop(told.get("id", 0), None):
                waiting.set_result(told)
            elif told.get("sessionId", "") == self.session:
                self.events.append(told)

    async def value(self, expression: str) -> Any:
        """Return what an expression is worth in the page; promises are waited for."""
        result = await self.call(
            "Runtime.evaluate",
            expression=expression,
            awaitPromise=True,
            returnByValue=True,
            userGesture=True,
        )
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    async def until(self, condition: str, wait_s: float = WAIT_S) -> None:
        """Wait until a condition holds in the page."""
        await self.value(
            f"""new Promise((done, fail) => {{
                const until = performance.now() + {1000 * wait_s};
                const look = () => {{
                    if ({condition}) return done(true);
                    if (performance.now() > until) return fail(new Error(document.body.innerText));
                    setTimeout(look, 10);
                }};
                look();
            }})"""
        )

    async def open(self, url: str) -> None:
        """Load a page."""
        await self.call("Page.navigate", url=url)
        await self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    async def text(self, selector: str) -> str:
        """Return what one can read in an element."""
        return await self.value(f"document.querySelector({json.dumps(selector)}).innerText")

    async def click(self, selector: str) -> None:
        """Click on an element with the mouse, where it is."""
        place = await self.value(
            f"""(() => {{
                const box = document.querySelector({json.dumps(selector)}).getBoundingClientRect();
                return {{x: box.x + box.width / 2, y: box.y + box.height / 2}};
            }})()"""
        )
        for kind in ("mousePressed", "mouseReleased"):
            await self.call(
                "Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **place
            )

    async def write(self, text: str) -> None:
        """Write into what has the focus."""
        await self.call("Input.insertText", text=text)

    async def press(self, key: str, *, shift: bool = False) -> None:
        """Press a key."""
        code, text = _KEYS[key]
        about = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        about["modifiers"] = _SHIFT if shift else 0
        await self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **about)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **about)

    async def size(self, width: int, height: int, scale: float = 1.0) -> None:
        """Take a window of that many pixels; below 600 it is a phone's."""
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=width < 600,
        )

    async def prefers(self, colours: str) -> None:
        """Let the system be `light` or `dark`."""
        features = [{"name": "prefers-color-scheme", "value": colours}]
        await self.call("Emulation.setEmulatedMedia", features=features)

    async def picture(self) -> bytes:
        """Return a PNG of what one sees."""
        return base64.b64decode((await self.call("Page.captureScreenshot", format="png"))["data"])

    def asked(self) -> list[str]:
        """Return the addresses that the page has asked for."""
        return [
            each["params"]["request"]["url"]
            for each in self.events
            if each["method"] == "Network.requestWillBeSent"
        ]

    def complaints(self) -> list[str]:
        """Return what the browser complained of: errors, warnings, what a policy forbids."""
        kinds = {"Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled"}
        return [json.dumps(each["params"]) for each in self.events if each["method"] in kinds]


@asynccontextmanager
async def opened_tab(address: str) -> AsyncGenerator[Tab]:
    """Open a tab of a running Chromium, with a profile that nobody has used."""
    async with (
        aiohttp.ClientSession() as client,
        client.ws_connect(address, max_msg_size=MOST_BYTES) as socket,
        asyncio.TaskGroup() as tasks,
    ):
        tab = Tab(socket)
        listening = tasks.create_task(tab.listen())
        context = (await tab.call("Target.createBrowserContext"))["browserContextId"]
        target = await tab.call("Target.createTarget", url="about:blank", browserContextId=context)
        attached = await tab.call(
            "Target.attachToTarget", targetId=target["targetId"], flatten=True
        )
        tab.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log", "Accessibility"):
            await tab.call(f"{domain}.enable")
        await tab.size(1280, 800)
        try:
            yield tab
        finally:
            tab.session = ""
            await tab.call("Target.disposeBrowserContext", browserContextId=context)
            listening.cancel()
