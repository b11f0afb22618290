"""What the guide tells other programs to send is sent as it is written, to an endpoint of a test.

Open WebUI isn't installed: its line is compared with what the endpoint serves, and what it sends is
replayed in tests/unit/daemon/serving/test_endpoint.py.
"""

import asyncio
import shlex
import sys

import pytest

from tests.docs.pages import ROOT, Block, blocks
from tests.support.serving.open_endpoint import OpenEndpoint, open_endpoint

pytestmark = pytest.mark.net

GUIDE = ROOT / "docs" / "guides" / "chat.md"
PRINTED = "http://127.0.0.1:47480"
"""The address in the guide."""

WRITTEN = [each for each in blocks(GUIDE) if PRINTED in each.text]
CURL, PYTHON, OPEN_WEBUI = WRITTEN


async def printed_by(*command: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    out, _ = await process.communicate()
    assert process.returncode == 0, out
    return out.decode()


def at(block: Block, here: OpenEndpoint) -> str:
    return block.text.replace(PRINTED, here.url)


async def test_curl_lists_the_models_and_has_a_question_answered():
    async with open_endpoint() as here:
        told = await printed_by("bash", "-ec", at(CURL, here).replace("curl ", "curl -sS "))
    assert '"id": "promoted"' in told
    assert '"content": "What is a ledger? "' in told, "the engine of the test says what it is told"


async def test_the_openai_package_has_a_question_answered():
    async with open_endpoint() as here:
        told = await printed_by(sys.executable, "-c", at(PYTHON, here))
    assert told == "What is a ledger? "


async def test_open_webui_is_led_to_where_the_models_are_listed():
    words = shlex.split(OPEN_WEBUI.text)
    named = dict(word.split("=", 1) for word in words if "=" in word)
    async with open_endpoint() as here:
        base = named["OPENAI_API_BASE_URL"].replace(PRINTED, here.url)
        found = await here.client.get(f"{base}/models")
    assert found.json()["data"][0]["id"] == "promoted"
