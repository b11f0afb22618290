"""The page as the real endpoint gives it out, in a real browser."""

from pathlib import Path

import pytest

from jupiterd.daemon.serving.endpoint_plan import EndpointPlan
from tests.support.browser.chromium import chromium, needs_chromium
from tests.support.browser.devtools import opened_tab
from tests.support.serving.open_endpoint import open_endpoint

pytestmark = [pytest.mark.full, pytest.mark.net, needs_chromium]

TOKEN = "0123456789abcdef" * 2


async def test_a_message_is_answered_and_a_token_asked_for(tmp_path: Path):
    with chromium(tmp_path) as address:
        async with (
            open_endpoint(EndpointPlan(port=0, token=TOKEN)) as here,
            opened_tab(address) as tab,
        ):
            await tab.open(f"{here.url}/")
            await tab.until("document.querySelector('#ask-token').open")
            refused = tab.complaints()
            assert all("401" in each for each in refused)
            await tab.write(TOKEN)
            await tab.press("Enter")
            await tab.until("document.querySelector('.card')?.innerText.includes('256 tokens')")
            await tab.value("document.querySelector('#prompt').focus()")
            await tab.write("one two three")
            await tab.press("Enter")
            await tab.until("document.querySelector('.answer')?.ariaBusy === 'false'")
            assert await tab.text(".answer .said") == "one two three"
            assert "3 tokens" in await tab.text(".figures")
            assert here.engine.asked[-1]["messages"][-1]["content"] == "one two three"
            assert tab.complaints() == refused
            assert [url for url in tab.asked() if not url.startswith(here.url)] == []
