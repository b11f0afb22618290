"""The page in a real browser, of a real daemon whose engine runs a tiny model."""

from pathlib import Path

import pytest

from tests.support.browser.chromium import chromium, needs_chromium
from tests.support.browser.devtools import Tab, opened_tab
from tests.support.daemons.cluster import NAMES, Daemon, running
from tests.support.serving.served_command import ServedCommand, served_command
from tests.support.serving.slow_models import CONTEXT, write_chatty

pytest.importorskip("xllamacpp")
pytestmark = [pytest.mark.net, pytest.mark.long, pytest.mark.timeout(240), needs_chromium]

LOADS_S = 120.0
BUSY = "document.querySelector('.lanes:last-child .answer')?.ariaBusy"


async def test_a_real_model_is_talked_to_in_a_browser_and_stopped(tmp_path: Path) -> None:
    model = write_chatty(tmp_path / "chatty")
    async with running([Daemon(tmp_path, NAMES[0])]) as cluster:
        await cluster.meet()
        async with served_command(cluster[0].state_dir, str(model)) as serving:
            with chromium(tmp_path / "chromium") as address:
                async with opened_tab(address) as tab:
                    await tab.open(serving.url.removesuffix("v1"))
                    await _talk(tab, serving)
            assert await serving.interrupt() == 0


async def _talk(tab: Tab, serving: ServedCommand) -> None:
    context = f"'{CONTEXT:,} tokens'"
    await tab.until(f"document.querySelector('.card')?.innerText.includes({context})")
    await _set(tab, CONTEXT - 100)  # drawn, it might end before it is stopped
    await _say(tab, "the bread")
    await tab.until(f"{BUSY} === 'true' && document.querySelector('.said').innerText", LOADS_S)
    await tab.press("Escape")
    await tab.until(f"{BUSY} === 'false'")
    request = await serving.next_request()
    assert (request["model"], request["status"]) == ("chatty", 499)
    await _set(tab, 5)
    await _say(tab, "the bread")
    await tab.until(f"{BUSY} === 'false'", LOADS_S)
    assert "5 tokens" in await tab.text(".figures")
    assert (await serving.next_request())["status"] == 200
    assert tab.complaints() == []


async def _set(tab: Tab, max_tokens: int) -> None:
    """Keep settings as the page does, and load it again."""
    await tab.value(
        "localStorage.setItem('jupiter-settings', JSON.stringify("
        f"{{system: '', temperature: 0, maxTokens: {max_tokens}, way: 'auto'}}))"
    )
    await tab.open(await tab.value("location.href"))
    await tab.until("document.querySelector('.card') && !document.querySelector('.answer')")


async def _say(tab: Tab, text: str) -> None:
    await tab.value("document.querySelector('#prompt').focus()")
    await tab.write(text)
    await tab.press("Enter")
