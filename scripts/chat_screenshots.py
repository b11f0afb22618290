"""Take the pictures of the page on which people talk to models, from an endpoint that answers.

    jupiterctl model serve                                       # in one terminal
    .venv/bin/python scripts/chat_screenshots.py --ask QUESTION  # in another; needs Chromium

Owns the sizes and colours of the pictures, and how large their files may be. Nothing in them is
prepared: a real browser shows what a real model answers, always with the likeliest word.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support.browser.devtools import Tab

ROOT = Path(__file__).resolve().parent.parent
MOST_BYTES = 150_000
DESKTOP, PHONE = (1200, 820, 1.0), (390, 780, 1.5)
ANSWERED = "document.querySelector('.lanes:last-child') && document.querySelector('#stop').hidden"
SETTINGS = {"system": "", "temperature": 0, "maxTokens": 120, "way": "auto"}
WRITES_S = 600.0
"""That a model may take for an answer, with others on the same cores."""


@dataclass(frozen=True)
class Pictures:
    """A tab with the page in it, and where its pictures go."""

    tab: "Tab"
    out: Path

    async def take(self, name: str, size: tuple[int, int, float], colours: str) -> None:
        """Write one picture."""
        await self.tab.size(*size)
        await self.tab.prefers(colours)
        await self.tab.value("document.activeElement.blur()")
        path = self.out / f"{name}.png"
        path.write_bytes(await self.tab.picture())
        print(f"wrote {path}, {path.stat().st_size} bytes")
        if path.stat().st_size > MOST_BYTES:
            sys.exit(f"{path} has more than {MOST_BYTES} bytes: ask for something shorter")

    async def ask(self, question: str) -> None:
        """Ask as people do, and wait for the whole answer."""
        await self.tab.value("document.querySelector('#prompt').focus()")
        await self.tab.write(question)
        await self.tab.press("Enter")
        await self.tab.until(ANSWERED, WRITES_S)

    async def choose(self, picker: str, model: str) -> None:
        """Choose a model."""
        place = json.dumps(picker)
        await self.tab.value(
            f"document.querySelector({place}).value = {json.dumps(model)};"
            f"document.querySelector({place}).dispatchEvent(new Event('change'))"
        )


def main() -> int:
    """Take the pictures; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--url", default="http://127.0.0.1:47480/")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "screenshots")
    parser.add_argument("--ask", action="append", required=True, metavar="QUESTION")
    parser.add_argument("--beside", default="", metavar="MODEL", help="for the picture of two")
    parser.add_argument("--ask-both", default="", metavar="QUESTION", help="there; else the first")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))  # the browser's protocol is spoken by the tests, too
    asyncio.run(take_pictures(options))
    return 0


async def take_pictures(options: argparse.Namespace) -> None:
    """Open the page, ask, and take every picture."""
    from tests.support.browser.chromium import chromium
    from tests.support.browser.devtools import opened_tab

    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, chromium(Path(folder)) as address:
        async with opened_tab(address) as tab:
            await _open(tab, options.url)
            pictures = Pictures(tab, options.out)
            await _take_all(pictures, options.ask)
            if options.beside:
                await _take_two(pictures, options.ask_both or options.ask[0], options.beside)


async def _open(tab: "Tab", url: str) -> None:
    await tab.open(url)
    kept = json.dumps(json.dumps(SETTINGS))
    await tab.value(f"localStorage.setItem('jupiter-settings', {kept})")
    await tab.open(url)
    await tab.until("document.querySelector('.card')")


async def _take_all(pictures: Pictures, questions: list[str]) -> None:
    await pictures.tab.size(*DESKTOP)
    for question in questions:
        await pictures.ask(question)
    await pictures.take("chat-light", DESKTOP, "light")
    await pictures.take("chat-dark", DESKTOP, "dark")
    await pictures.tab.click("#show-card")
    await pictures.take("chat-phone", PHONE, "light")


async def _take_two(pictures: Pictures, question: str, beside: str) -> None:
    await pictures.tab.size(*DESKTOP)
    await pictures.choose("#beside", beside)
    await pictures.tab.click("#new-chat")
    await pictures.ask(question)
    await pictures.take("chat-beside", DESKTOP, "light")


if __name__ == "__main__":
    sys.exit(main())
