"""The page in a real browser: what a user does there, and what must never happen."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.browser.chromium import chromium, needs_chromium
from tests.support.browser.devtools import Tab, opened_tab
from tests.support.browser.words_endpoint import WordsEndpoint, serving

pytestmark = [pytest.mark.full, pytest.mark.net, needs_chromium]

CARD = {
    "kind": "candidate",
    "verdict": "PROMOTE",
    "bits_per_byte": 2.1165,
    "base_bits_per_byte": 2.8282,
    "steps": 780,
    "tokens": 798720,
    "parameters": 1_048_576,
    "trained_on": ["python"],
    "licence": "PSF-2.0",
    "cycle": "e8b6d51c00000000",
    "round": 2,
    "node": "node-1",
    "engine": "transformers",
    "context_tokens": 2048,
    "chat": True,
}
WAIT_S = 20
ANSWER = ".lanes:last-child .answer .said"
ENDED = "document.querySelector('.lanes:last-child .answer')?.getAttribute('aria-busy') === 'false'"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with chromium(tmp_path_factory.mktemp("chromium")) as address:
        yield address


@pytest.fixture
async def tab(browser: str) -> AsyncIterator[Tab]:
    async with opened_tab(browser) as opened:
        yield opened


@pytest.fixture
async def endpoint() -> AsyncIterator[WordsEndpoint]:
    async with serving(WordsEndpoint(cards={"promoted": CARD, "base": {}})) as served:
        yield served


async def opened(tab: Tab, endpoint: WordsEndpoint) -> None:
    """Open the page, and wait until it knows its models."""
    await tab.open(endpoint.url)
    await tab.until("document.querySelector('.card')")


async def said(tab: Tab, text: str) -> None:
    """Write a message, and send it."""
    await tab.value("document.querySelector('#prompt').focus()")
    await tab.write(text)
    await tab.press("Enter")


async def answered(tab: Tab, text: str) -> str:
    """Send a message, and return the whole answer."""
    await said(tab, text)
    await tab.until(ENDED)
    return await tab.text(ANSWER)


async def test_the_page_loads_without_a_complaint_and_asks_nobody_else(tab, endpoint):
    await opened(tab, endpoint)
    assert await answered(tab, "Hello?") == "Hello there."
    assert tab.complaints() == []
    asked = tab.asked()
    assert f"{endpoint.url}chat.js" in asked
    assert [url for url in asked if not url.startswith(endpoint.url)] == []


async def test_an_answer_is_shown_while_it_is_written(tab, endpoint):
    endpoint.held_before = 1
    await opened(tab, endpoint)
    await said(tab, "Hello?")
    await tab.until("document.querySelector('.answer .said')?.innerText === 'Hello'")
    assert await tab.value("document.querySelector('.answer').getAttribute('aria-busy')") == "true"
    endpoint.piece_s = 0.1
    endpoint.go.set()
    await tab.until(ENDED)
    assert await tab.text(ANSWER) == "Hello there."
    figures = await tab.text(".figures")
    assert "3 tokens" in figures
    assert "tokens/s" in figures
    assert "first after" in figures


@pytest.mark.parametrize("way", ["button", "Escape"])
async def test_an_answer_is_stopped_and_the_endpoint_hears_of_it(tab, endpoint, way):
    endpoint.held_before = 2
    await opened(tab, endpoint)
    await said(tab, "Hello?")
    await tab.until("document.querySelector('.answer .said')?.innerText === 'Hello there'")
    await (tab.click("#stop") if way == "button" else tab.press("Escape"))
    await tab.until(ENDED)
    await asyncio.wait_for(endpoint.gone.wait(), WAIT_S)
    assert await tab.text(ANSWER) == "Hello there"
    assert "stopped" in await tab.text(".figures")
    endpoint.held_before = None
    assert await answered(tab, "And now?") == "Hello there."


async def test_what_an_answer_waits_for_is_told(tab, endpoint):
    endpoint.waits_for = "node-2 loads promoted"
    endpoint.held_before = 0
    await opened(tab, endpoint)
    await said(tab, "Hello?")
    await tab.until("document.querySelector('.figures')?.innerText === 'node-2 loads promoted'")
    endpoint.go.set()
    await tab.until(ENDED)
    assert "node-2" not in await tab.text(".figures")


async def test_what_was_said_and_the_settings_go_with_the_next_message(tab, endpoint):
    await opened(tab, endpoint)
    await tab.click("#show-settings")
    await tab.value("document.querySelector('#system').focus()")
    await tab.write("Be brief.")
    await tab.value("document.querySelector('#max-tokens').focus()")
    await tab.write("7")
    await tab.press("Escape")
    await answered(tab, "One")
    await answered(tab, "Two")
    assert endpoint.asked[-1]["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "One"},
        {"role": "assistant", "content": "Hello there."},
        {"role": "user", "content": "Two"},
    ]
    assert endpoint.asked[-1]["max_tokens"] == 7
    assert endpoint.asked[-1]["model"] == "promoted"
    await tab.click("#new-chat")
    await answered(tab, "Three")
    assert len(endpoint.asked[-1]["messages"]) == 2
    await tab.open(endpoint.url)
    assert await tab.value("document.querySelectorAll('.asked').length") == 0
    assert "Be brief." in await tab.value("localStorage.getItem('jupiter-settings')")


async def test_shift_and_enter_begin_a_new_line(tab, endpoint):
    await opened(tab, endpoint)
    await tab.value("document.querySelector('#prompt').focus()")
    await tab.write("One")
    await tab.press("Enter", shift=True)
    await tab.write("two")
    await tab.press("Enter")
    await tab.until(ENDED)
    assert endpoint.asked[-1]["messages"][-1]["content"] == "One\ntwo"


ATTACK = (
    '<img src=x onerror="window.struck=1"><script>window.struck=1</script> **<b>bold</b>** '
    "[a](javascript:window.struck=1) `<i>`\n\n```html\n<svg onload=window.struck=1>\n```\n"
)


async def test_markup_in_an_answer_a_question_and_a_name_stays_text(tab, endpoint):
    endpoint.words["promoted"] = [ATTACK[at : at + 5] for at in range(0, len(ATTACK), 5)]
    endpoint.cards["promoted"] = CARD | {"node": ATTACK, "engine": ATTACK, "verdict": ATTACK}
    endpoint.cards[ATTACK] = {}
    await opened(tab, endpoint)
    shown = await answered(tab, ATTACK)
    assert "<script>window.struck=1</script>" in shown
    assert "<svg onload=window.struck=1>" in shown
    assert ATTACK.strip() in await tab.value("document.querySelector('.asked > div').textContent")
    assert await tab.value("window.struck === undefined")
    made = "img, script, b, i, svg, a, iframe, object, form"
    assert (
        await tab.value(f"document.querySelector('#turns').querySelectorAll('{made}').length") == 0
    )
    assert (
        await tab.value(f"document.querySelector('#cards').querySelectorAll('{made}').length") == 0
    )
    assert [url for url in tab.asked() if not url.startswith(endpoint.url)] == []
    assert tab.complaints() == []


TEXT = """# Title

First *line*
second `code` and **bold**.

- one
- two
  more

3. three
4. four

> quoted

```python
x = 1 < 2
```
"""


async def test_an_answer_has_its_paragraphs_lists_and_code(tab, endpoint):
    endpoint.words["promoted"] = [*TEXT]
    await opened(tab, endpoint)
    await answered(tab, "Show me")
    tags = "[...document.querySelector('.said').children].map(each => each.tagName).join(' ')"
    assert await tab.value(tags) == "H3 P UL OL BLOCKQUOTE DIV"
    assert await tab.text(".said pre") == "x = 1 < 2"
    assert await tab.text(".said .code-top span") == "python"
    assert await tab.value("document.querySelector('.said ol').start") == 3
    assert await tab.value("document.querySelectorAll('.said li').length") == 4
    assert await tab.text(".said p strong") == "bold"


async def test_the_token_is_asked_for_and_kept_for_this_tab(tab, endpoint):
    endpoint.token = "the-right-one"
    await tab.open(endpoint.url)
    await tab.until("document.querySelector('#ask-token').open")
    for given in ("wrong", "the-right-one"):
        await tab.value("document.querySelector('#token').select()")
        await tab.write(given)
        await tab.press("Enter")
        is_refused = str(given == "wrong").lower()
        await tab.until(
            f"document.querySelector('#token-wrong').hidden !== {is_refused}"
            f" && document.querySelector('#ask-token').open === {is_refused}"
        )
    await tab.until("document.querySelector('.card dl')")
    assert await answered(tab, "Hello?") == "Hello there."
    await opened(tab, endpoint)
    assert await tab.value("document.querySelector('#ask-token').open") is False
    assert "the-right-one" not in await tab.value("JSON.stringify(localStorage)")


async def test_the_models_card_is_shown(tab, endpoint):
    await opened(tab, endpoint)
    card = await tab.text(".card")
    for told in ("promoted", "2.1165", "2.8282", "780", "798.7K", "1M", "PSF-2.0", "node-1",
                 "transformers", "2,048 tokens", "e8b6d51c, round 2"):  # fmt: skip
        assert told in card
    assert await tab.value("document.title") == "promoted · Jupiter"


async def test_a_link_may_name_the_model(tab, endpoint):
    endpoint.cards["e8b6d51c/2"] = CARD
    await tab.open(f"{endpoint.url}?model=e8b6d51c%2F2")
    await tab.until("document.querySelector('.card')?.innerText.startsWith('e8b6d51c/2')")
    await answered(tab, "Hello?")
    assert endpoint.asked[-1]["model"] == "e8b6d51c/2"


async def test_a_model_of_which_nothing_is_known_can_be_talked_to(tab, endpoint):
    del endpoint.cards["promoted"]
    await opened(tab, endpoint)
    assert "tells nothing more" in await tab.text(".card")
    assert await answered(tab, "Hello?") == "Hello there."


async def test_a_model_without_a_template_goes_on_with_a_text(tab, endpoint):
    endpoint.cards["promoted"] = CARD | {"chat": False, "context_tokens": 256}
    endpoint.words["promoted"] = [" os\n", "import sys"]
    await opened(tab, endpoint)
    assert await answered(tab, "import") == "import os\nimport sys"
    asked = endpoint.asked[-1]
    assert (asked["path"], asked["prompt"], asked["max_tokens"]) == (
        "/v1/completions",
        "import",
        128,
    )
    assert "messages" not in asked


async def test_a_model_that_turns_out_to_have_no_template_is_asked_again_as_it_can(tab, endpoint):
    endpoint.chats = False
    endpoint.words["base"] = endpoint.words["promoted"] = [" os"]
    await opened(tab, endpoint)
    assert await answered(tab, "import") == "import os"
    paths = [asked["path"] for asked in endpoint.asked]
    assert paths == ["/v1/chat/completions", "/v1/completions"]


async def test_two_models_answer_side_by_side_each_with_its_own_past(tab, endpoint):
    endpoint.words |= {"promoted": ["New"], "base": ["Old"]}
    await opened(tab, endpoint)
    await tab.value(
        "document.querySelector('#beside').value = 'base';"
        "document.querySelector('#beside').dispatchEvent(new Event('change'))"
    )
    await tab.until("document.querySelectorAll('.card').length === 2")
    for question in ("One", "Two"):
        await said(tab, question)
        await tab.until(
            "document.querySelectorAll('.lanes:last-child [aria-busy=false]').length === 2"
        )
        await tab.until("document.querySelector('#stop').hidden")
    said_by = {asked["model"]: asked["messages"][1]["content"] for asked in endpoint.asked[-2:]}
    assert said_by == {"promoted": "New", "base": "Old"}
    left, right = await tab.value(
        "[...document.querySelectorAll('.lanes:last-child .answer')]"
        ".map(each => each.getBoundingClientRect().x)"
    )
    assert left < right


async def test_an_error_is_shown_with_its_message_and_when_to_try_again(tab, endpoint):
    error = {"message": "this node trains; the model isn't pinned", "code": "busy"}
    endpoint.refusal = (503, error, {"Retry-After": "5"})
    await opened(tab, endpoint)
    await said(tab, "Hello?")
    await tab.until(ENDED)
    assert "this node trains" in await tab.text(".trouble")
    assert "Try again in 5 s" in await tab.text(".trouble")
    endpoint.refusal = None
    await tab.click(".again")
    await tab.until("document.querySelector('.said')?.innerText === 'Hello there.'")
    assert await tab.value("document.querySelectorAll('.asked').length") == 1


async def test_an_answer_that_breaks_off_keeps_what_was_written(tab, endpoint):
    endpoint.breaks_with = {
        "message": "the engine died",
        "hint": "ask again",
        "code": "engine-lost",
    }
    await opened(tab, endpoint)
    assert await answered(tab, "Hello?") == "Hello there."
    assert await tab.text(".trouble") == "the engine died\nask again"


async def test_the_oldest_turns_are_left_out_where_the_context_is_full_and_that_is_said(
    tab, endpoint
):
    endpoint.most_messages = 3
    await opened(tab, endpoint)
    for question in ("one", "two"):
        assert await answered(tab, question) == "Hello there."
        assert await tab.text(".lanes:last-child .noted") == ""
    assert await answered(tab, "three") == "Hello there."
    said = [each["content"] for each in endpoint.asked[-1]["messages"]]
    assert said == ["two", "Hello there.", "three"]
    noted = await tab.text(".lanes:last-child .noted")
    assert "of 2,048 tokens has no room for the whole conversation" in noted
    assert "the oldest question and its answer are left out" in noted


async def test_what_a_context_has_no_room_for_is_not_even_sent(tab, endpoint):
    endpoint.cards["promoted"] = CARD | {"context_tokens": 100}
    await opened(tab, endpoint)
    await answered(tab, "a" * 120)
    await answered(tab, "b" * 120)
    assert [each["content"] for each in endpoint.asked[-1]["messages"]] == ["b" * 120]
    assert "left out" in await tab.text(".lanes:last-child .noted")


async def test_words_of_code_may_have_backticks_in_them(tab, endpoint):
    endpoint.words["promoted"] = ["Use ``a `b` c``, `` ` `` and `x`; ``an open one `y`."]
    await opened(tab, endpoint)
    await answered(tab, "Hello?")
    found = "[...document.querySelectorAll('.said p code')].map((each) => each.textContent)"
    assert await tab.value(found) == ["a `b` c", "`", "x", "y"]


async def test_the_card_goes_and_comes_with_the_room_for_it(tab, endpoint):
    await opened(tab, endpoint)
    shown = "document.body.classList.contains('with-card')"
    await tab.until(shown)
    await tab.size(700, 720)
    await tab.until(f"!{shown}")
    await tab.size(1280, 800)
    await tab.until(shown)


@pytest.mark.parametrize("is_gone", [False, True])
async def test_a_connection_that_is_cut_is_told_with_whether_anybody_is_left(
    tab, endpoint, is_gone
):
    endpoint.is_cut, endpoint.held_before, endpoint.is_gone = True, 2, is_gone
    await opened(tab, endpoint)
    await said(tab, "Hello?")
    await tab.until("document.querySelector('.said')?.innerText === 'Hello there'")
    endpoint.go.set()
    await tab.until(ENDED)
    assert await tab.text(ANSWER) == "Hello there"
    told = await tab.text(".trouble")
    assert told.startswith("The answer broke off")
    assert ("the endpoint is gone" in told) == is_gone
    assert ("Start jupiterd" in told) == is_gone
    assert "another engine" not in told


async def test_what_a_model_thinks_counts_and_isnt_its_answer(tab, endpoint):
    endpoint.thoughts, endpoint.piece_s = ["well"] * 30, 0.02
    endpoint.held_before = 0
    await opened(tab, endpoint)
    await said(tab, "Hello?")
    await tab.until("document.querySelector('.figures')?.innerText.startsWith('it thinks')")
    endpoint.go.set()
    await tab.until(ENDED)
    assert await tab.text(ANSWER) == "Hello there."
    figures = await tab.text(".figures")
    assert figures.startswith("33 tokens")
    assert float(figures.split(" \u00b7 ")[1].split()[0]) < 64  # the thoughts took their time, too


async def test_no_model_yet_says_what_to_run(tab, endpoint):
    endpoint.cards.clear()
    await tab.open(endpoint.url)
    await tab.until("!document.querySelector('#notice').hidden")
    assert "jupiterctl cycle start" in await tab.text("#notice")


async def test_dark_and_light_follow_the_system_until_one_is_chosen(tab, endpoint):
    async def is_dark() -> bool:
        colour = await tab.value("getComputedStyle(document.body).backgroundColor")
        return sum(json.loads(colour.replace("rgb(", "[").replace(")", "]"))) < 200

    await tab.prefers("dark")
    await opened(tab, endpoint)
    assert await is_dark()
    await tab.prefers("light")
    assert not await is_dark()
    await tab.click("#switch-theme")
    assert await is_dark()
    await opened(tab, endpoint)
    assert await is_dark()


WIDER = """
    [...document.querySelectorAll("body, .bar, main, #scroll, #turns, aside, dialog, .composer")]
        .filter(each => each.scrollWidth > each.clientWidth + 1
                        || each.getBoundingClientRect().right > innerWidth + 1)
        .map(each => each.id || each.className)
"""


@pytest.mark.parametrize("width", [360, 768, 1280])
async def test_nothing_is_wider_than_the_window(tab, endpoint, width):
    endpoint.words["promoted"] = ["w" * 200, "\n\n```\n", "x" * 300, "\n```\n- ", "y" * 200]
    endpoint.cards["promoted"] = CARD | {"node": "n" * 100, "cycle": "c" * 100}
    endpoint.cards["m" * 80] = {}
    await tab.size(width, 720)
    await opened(tab, endpoint)
    assert await tab.value(WIDER) == []
    await answered(tab, "q" * 200)
    assert await tab.value("document.documentElement.scrollWidth") == width
    assert await tab.value(WIDER) == []
    await tab.click("#show-card")
    assert await tab.value(WIDER) == []
    await tab.click("#show-settings")
    assert await tab.value(WIDER) == []


async def test_everything_that_can_be_used_has_a_name(tab, endpoint):
    await opened(tab, endpoint)
    await answered(tab, "Hello?")
    await tab.click("#show-settings")
    used = {"button", "textbox", "combobox", "slider", "spinbutton", "dialog", "log", "Iframe"}
    for root in ("#settings", "body"):
        nodes = (await tab.call("Accessibility.getFullAXTree"))["nodes"]
        found = [node for node in nodes if node.get("role", {}).get("value") in used]
        assert len(found) > 5
        nameless = [node for node in found if not node.get("name", {}).get("value")]
        assert nameless == [], root
        await tab.press("Escape")
