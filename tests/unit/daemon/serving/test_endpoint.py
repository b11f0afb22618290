"""The endpoint in front of a real server that writes words."""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from jupiterd.cluster.serving.answer_events import EventStream
from jupiterd.cluster.serving.answer_request import AnswerRequest
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.daemon.serving import endpoint_access
from jupiterd.daemon.serving.answering import Answer
from jupiterd.daemon.serving.endpoint_plan import EndpointPlan
from jupiterd.daemon.serving.endpoint_server import MOST_BODY_BYTES
from jupiterd.daemon.serving.waiting_line import WaitingLine
from jupiterd.errors import BusyError
from tests.support.daemon.two_nodes import until
from tests.support.serving.open_endpoint import OpenEndpoint, open_endpoint
from tests.support.serving.word_engine import WordEngine

pytestmark = pytest.mark.net

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
TOKEN = "0123456789abcdef" * 2
SITE = "https://chat.example.org"


def chat(prompt: str, **fields: Any) -> dict[str, Any]:
    return {"model": "promoted", "messages": [{"role": "user", "content": prompt}], **fields}


def text(prompt: str | list[str], **fields: Any) -> dict[str, Any]:
    return {"model": "promoted", "prompt": prompt, **fields}


async def events(here: OpenEndpoint, path: str, body: dict[str, Any]) -> list[Any]:
    """Return what a stream says, without its end."""
    async with here.client.stream("POST", path, json=body) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        lines = [line async for line in response.aiter_lines() if line]
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


async def test_a_conversation_is_answered_in_one_piece():
    async with open_endpoint() as here:
        found = (await here.client.post(CHAT, json=chat("one two three", max_tokens=2))).json()
        assert found["model"] == "promoted"
        assert found["choices"][0]["message"]["content"] == "one two "
        assert found["usage"]["completion_tokens"] == 2
        (asked,) = here.engine.asked
        assert asked["max_tokens"] == 2


async def test_a_conversation_is_streamed_word_by_word():
    async with open_endpoint() as here:
        found = await events(here, CHAT, chat("one two", stream=True))
        assert [each["choices"][0]["delta"]["content"] for each in found] == ["one ", "two ", ""]
        assert {each["model"] for each in found} == {"promoted"}
        assert not any("usage" in each for each in found)


async def test_usage_of_a_stream_comes_last_if_it_is_asked_for():
    options = {"include_usage": True}
    async with open_endpoint() as here:
        found = await events(here, TEXT, text("one two", stream=True, stream_options=options))
        assert found[-1]["choices"] == []
        assert found[-1]["usage"]["total_tokens"] == 4
        assert {each["usage"] for each in found[:-1]} == {None}
        uncounted = await events(here, TEXT, text("no usage", stream=True, stream_options=options))
        assert uncounted[-1]["usage"] is None


async def test_several_prompts_are_answered_in_their_order_and_counted_together():
    prompts = ["one two", "three", "four five six"]
    async with open_endpoint() as here:
        found = (await here.client.post(TEXT, json=text(prompts))).json()
        assert [each["index"] for each in found["choices"]] == [0, 1, 2]
        assert [each["text"].split() for each in found["choices"]] == [p.split() for p in prompts]
        assert found["usage"] == {"prompt_tokens": 6, "completion_tokens": 6, "total_tokens": 12}
        assert len(here.engine.asked) == 3


async def test_several_prompts_are_streamed_each_with_its_place_and_end_once():
    options = {"include_usage": True}
    async with open_endpoint() as here:
        asked = text(["one two", "three"], stream=True, stream_options=options)
        found = await events(here, TEXT, asked)
        said = [(each["index"], each["text"]) for row in found for each in row["choices"]]
        assert said == [(0, "one "), (0, "two "), (0, ""), (1, "three "), (1, "")]
        assert [row["usage"] for row in found if row["usage"]] == [
            {"prompt_tokens": 3, "completion_tokens": 3, "total_tokens": 6}
        ]
        assert found[-1]["choices"] == []
        assert len({row["id"] for row in found}) == 1


async def test_one_prompt_that_is_refused_refuses_all_and_ends_the_others():
    async with open_endpoint() as here:
        status, error = await refusal(here, TEXT, json=text(["hang on", "refuse"]))
        assert (status, error["message"]) == (400, "the prompt has 9 tokens of 8")
        await until(lambda: not here.engine.running)
        async with here.client.stream(
            "POST", TEXT, json=text(["one", "refuse", "two"], stream=True)
        ) as response:
            lines = [line async for line in response.aiter_lines() if line]
        assert lines[-1] == "data: [DONE]"
        assert "the prompt has 9 tokens of 8" in lines[-2]
        assert not any("two" in line for line in lines)


class BusyOnce:
    """An engine that refuses a word the first time, once another answer has begun."""

    def __init__(self, engine: WordEngine, word: str) -> None:
        self._take, self._word = engine.answering, word
        self.refusals = 0
        self._others = asyncio.Event()

    @asynccontextmanager
    async def answering(self, model: ServedModel, request: AnswerRequest) -> AsyncGenerator[Answer]:
        if request.body["prompt"] == self._word and not self.refusals:
            await self._others.wait()
            self.refusals += 1
            raise BusyError("a training has the GPU", retry_after_s=0.01)
        async with self._take(model, request) as answer:
            self._others.set()
            yield answer


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_a_prompt_that_is_refused_for_now_loses_no_answer_to_another(
    monkeypatch: pytest.MonkeyPatch, is_streamed: bool
):
    async with open_endpoint() as here:
        busy = BusyOnce(here.engine, "two")
        monkeypatch.setattr(here.engine, "answering", busy.answering)
        asked = text(["one", "two", "three"], stream=is_streamed)
        rows = (
            await events(here, TEXT, asked)
            if is_streamed
            else [(await here.client.post(TEXT, json=asked)).json()]
        )
        said = [each["text"].strip() for row in rows for each in row["choices"]]
        assert [word for word in said if word] == ["one", "two", "three"]
        assert busy.refusals == 1


async def test_whoever_follows_hears_why_a_request_was_refused():
    async with open_endpoint() as here:
        with here.records.followed() as records:
            await here.client.post(CHAT, json=chat("a", temperature=7))
            record = await records.get()
            assert (record.status, record.model) == (400, "promoted")
            assert record.reason == "temperature must be from 0 to 2, not 7"
            await here.client.post(CHAT, json=chat("a", model="nobody"))
            assert "nobody" in (await records.get()).reason
            await here.client.post(TEXT, json=text("busy"))
            assert (await records.get()).reason == "a training has the GPU"
            await here.client.post(TEXT, json=text("one"))
            assert (await records.get()).reason == ""


async def test_whoever_follows_hears_of_wrong_tokens_now_and_then_and_not_which(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(endpoint_access, "TELL_EVERY_S", 1000.0)
    async with open_endpoint(EndpointPlan(port=0, token=TOKEN)) as here:
        with here.records.followed() as records:
            for _ in range(5):
                wrong = {"Authorization": "Bearer a-wrong-token"}
                assert (await here.client.get("/v1/models", headers=wrong)).status_code == 401
            record = await records.get()
            assert (record.status, record.is_chat) == (401, None)
            assert "token is missing or wrong" in record.reason
            assert "a-wrong-token" not in str(record)
            assert records.empty()


async def refusal(here: OpenEndpoint, path: str, **request: Any) -> tuple[int, dict[str, Any]]:
    response = await here.client.post(path, **request)
    error = response.json()["error"]
    assert {"message", "type", "param", "code"} <= set(error)
    return response.status_code, error


async def test_what_is_wrong_is_told_as_openai_tells_it():
    async with open_endpoint() as here:
        status, error = await refusal(here, CHAT, content=b"{")
        assert (status, error["type"]) == (400, "invalid_request_error")
        status, error = await refusal(here, CHAT, json=chat("a", max_tokens=10**9))
        assert (status, error["param"]) == (400, "max_tokens")
        status, error = await refusal(here, CHAT, json=chat("a", model="nobody"))
        assert (status, error["code"], error["param"]) == (404, "model_not_found", "model")
        status, error = await refusal(here, CHAT, json=chat("refuse"))
        assert (status, error["message"]) == (400, "the prompt has 9 tokens of 8")
        status, error = await refusal(here, CHAT, content=b"a" * (MOST_BODY_BYTES + 1))
        assert status == 413
        status, error = await refusal(here, "/v1/embeddings", json={})
        assert status == 404
        response = await here.client.get(CHAT)
        assert response.status_code == 405
        assert response.json()["error"]["message"]


async def test_who_is_busy_says_when_to_come_again():
    async with open_endpoint() as here:
        response = await here.client.post(TEXT, json=text("busy"))
        assert response.status_code == 503
        assert response.headers["Retry-After"] == "7"
        assert response.json()["error"]["code"] == "busy"


async def test_an_engine_that_dies_ends_the_stream_with_an_error():
    async with open_endpoint() as here:
        found = await events(here, TEXT, text("die after 2", stream=True))
        assert [each["choices"][0]["text"] for each in found[:-1]] == ["die ", "after "]
        assert found[-1]["error"]["code"] == "engine_lost"
        with here.records.followed() as records:
            assert (await events(here, TEXT, text("die after 0", stream=True)))[-1]["error"]
            assert (await records.get()).status == 502


@pytest.mark.parametrize("path", [CHAT, TEXT])
async def test_a_client_that_goes_away_ends_its_generation_within_a_second(path: str):
    async with open_endpoint() as here, asyncio.timeout(10):
        body = chat("hang on", stream=True) if path == CHAT else text("hang on", stream=True)
        with here.records.followed() as records:
            async with here.client.stream("POST", path, json=body) as response:
                async for _ in response.aiter_lines():
                    break
            async with asyncio.timeout(1):
                record = await records.get()
                await until(lambda: here.engine.cancelled == 1)
        assert here.engine.running == 0
        assert record.status == 499


async def test_a_client_that_goes_away_before_its_answer_ends_it_too():
    async with open_endpoint() as here:
        asking = asyncio.ensure_future(here.client.post(TEXT, json=text("slow")))
        await here.engine.has_begun.wait()
        asking.cancel()
        async with asyncio.timeout(1):
            await until(lambda: here.engine.cancelled == 1)


async def test_two_hundred_clients_at_once_are_all_answered_and_few_at_a_time():
    async with open_endpoint(line=WaitingLine(most_running=8)) as here:
        asked = [here.client.post(TEXT, json=text(f"number {n}")) for n in range(200)]
        answers = await asyncio.gather(*asked)
        found = [each.json()["choices"][0]["text"] for each in answers]
        assert found == [f"number {n} " for n in range(200)]
        assert here.engine.most_running <= 8


async def test_beyond_the_bound_clients_are_told_to_come_again():
    async with open_endpoint(line=WaitingLine(most_running=1, most_waiting=2)) as here:
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(here.client.post(TEXT, json=text("slow"))) for _ in range(8)]
            await until(lambda: sum(each.done() for each in asked) == 5)
            refused = [each.result() for each in asked if each.done()]
            here.engine.gate.set()
        assert {each.status_code for each in refused} == {429}
        assert all(int(each.headers["Retry-After"]) >= 1 for each in refused)
        answered = [each.result() for each in asked if each.result() not in refused]
        assert [each.status_code for each in answered] == [200, 200, 200]


async def test_one_that_waits_and_goes_away_leaves_its_place():
    line = WaitingLine(most_running=1, most_waiting=1)
    async with open_endpoint(line=line) as here:
        first = asyncio.ensure_future(here.client.post(TEXT, json=text("slow")))
        await here.engine.has_begun.wait()
        second = asyncio.ensure_future(here.client.post(TEXT, json=text("second")))
        await until(lambda: line.waiting("promoted") == 1)
        assert (await here.client.post(TEXT, json=text("third"))).status_code == 429
        second.cancel()
        await until(lambda: line.waiting("promoted") == 0)
        fourth = asyncio.ensure_future(here.client.post(TEXT, json=text("fourth")))
        await until(lambda: line.waiting("promoted") == 1)
        here.engine.gate.set()
        assert (await first).status_code == (await fourth).status_code == 200


async def test_a_fault_in_the_midst_of_a_stream_is_its_last_event(
    monkeypatch: pytest.MonkeyPatch,
):
    def fails(*_: object) -> Iterator[bytes]:
        raise RuntimeError("nobody foresaw it")

    monkeypatch.setattr(EventStream, "feed", fails)
    async with open_endpoint() as here:
        response = await here.client.post(TEXT, json=text("a b", stream=True))
        assert response.status_code == 200
        assert response.text.count("data: ") == 2
        assert "a fault in Jupiter ended the answer" in response.text
        assert response.text.endswith("data: [DONE]\n\n")


async def test_models_are_listed_and_shown():
    async with open_endpoint() as here:
        listed = (await here.client.get("/v1/models")).json()
        assert [each["id"] for each in listed["data"]] == ["promoted", "python/2"]
        shown = (await here.client.get("/v1/models/python/2")).json()
        assert shown.pop("jupiter")["name"] == "python/2"
        assert (shown["id"], shown["object"]) == ("python/2", "model")
        assert (await here.client.get("/v1/models/none")).status_code == 404
        assert (await here.client.get("/health")).json() == {"status": "ok"}


async def test_with_a_token_only_who_has_it_is_answered():
    async with open_endpoint(EndpointPlan(port=0, token=TOKEN)) as here:
        for header in ("", "Bearer x", f"Bearer {TOKEN[:-1]}x", f"Basic {TOKEN}", "Bearer \u00e9"):
            headers = {"Authorization": header.encode()} if header else {}
            response = await here.client.get("/v1/models", headers=headers)
            assert response.status_code == 401
            assert response.json()["error"]["code"] == "invalid_api_key"
        right = {"Authorization": f"Bearer {TOKEN}"}
        assert (await here.client.get("/v1/models", headers=right)).status_code == 200
        assert (await here.client.post(TEXT, json=text("a"), headers=right)).status_code == 200
        for path in ("/", "/health"):
            assert (await here.client.get(path)).status_code == 200


async def test_names_that_were_made_to_lead_here_are_refused():
    async with open_endpoint() as here:
        response = await here.client.get("/v1/models", headers={"Host": "evil.example.org"})
        assert response.status_code == 403
        port = httpx.URL(here.url).port
        local = await here.client.get("/v1/models", headers={"Host": f"localhost:{port}"})
        assert local.status_code == 200


async def test_pages_of_other_sites_ask_only_where_they_are_allowed():
    asks = {
        "Origin": SITE,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization",
    }
    async with open_endpoint() as here:
        for request in (
            here.client.request("OPTIONS", TEXT, headers=asks),
            here.client.post(TEXT, json=text("a"), headers={"Origin": SITE}),
        ):
            response = await request
            assert response.status_code == 403
            assert "Access-Control-Allow-Origin" not in response.headers
        assert here.engine.asked == []
    async with open_endpoint(EndpointPlan(port=0, token=TOKEN, origins=(SITE,))) as here:
        preflight = await here.client.request("OPTIONS", TEXT, headers=asks)
        assert preflight.status_code == 204
        assert preflight.headers["Access-Control-Allow-Origin"] == SITE
        assert preflight.headers["Access-Control-Allow-Headers"] == "authorization"
        right = {"Origin": SITE, "Authorization": f"Bearer {TOKEN}"}
        for streamed in (True, False):
            body = text("a", stream=streamed)
            answer = await here.client.post(TEXT, json=body, headers=right)
            assert answer.headers["Access-Control-Allow-Origin"] == SITE


async def test_the_page_can_load_and_send_nothing_elsewhere():
    async with open_endpoint() as here:
        response = await here.client.get("/")
        assert response.status_code == 200
        assert "default-src 'none'" in response.headers["Content-Security-Policy"]
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        for path in ("/endpoint_page.py", "/../endpoint_page.py", "/%2e%2e%2fendpoint_page.py"):
            assert (await here.client.get(path)).status_code == 404


async def test_what_is_told_of_a_request_has_figures_and_no_text():
    async with open_endpoint() as here:
        with here.records.followed() as records:
            await events(here, CHAT, chat("one two", stream=True))
            record = await records.get()
        assert (record.model, record.is_chat, record.status) == ("promoted", True, 200)
        assert (record.prompt_tokens, record.completion_tokens) == (2, 2)
        assert record.first_s is not None
        assert 0 < record.first_s <= record.duration_s
        assert "two" not in json.dumps(record.to_plain())


async def test_what_open_webui_sends_is_answered():
    """Its calls as its server makes them: the list of models, a chat, and a title for it.

    Version 0.12.4 sends no extras, but dozens of tools of its own with each question.
    """
    who = {"X-OpenWebUI-User-Name": "ann", "Authorization": f"Bearer {TOKEN}"}
    extras = {
        "chat_id": "c1",
        "session_id": "s1",
        "tool_ids": None,
        "features": {"web_search": False},
        "metadata": {"task": "chat", "variables": {"{{USER_NAME}}": "ann"}},
        "params": {},
        "user": {"id": "1", "name": "ann"},
    }
    async with open_endpoint(EndpointPlan(port=0, token=TOKEN)) as here:
        here.client.headers.update(who)
        assert (await here.client.get("/v1/models")).json()["data"][0]["id"] == "promoted"
        asked = {"stream": True, "stream_options": {"include_usage": True}, **extras}
        found = await events(here, CHAT, chat("one two", **asked))
        assert found[-1]["usage"]["completion_tokens"] == 2
        title = chat("a title", stream=False, max_completion_tokens=1000, **extras)
        assert (await here.client.post(CHAT, json=title)).status_code == 200
        assert not any(name in each for each in here.engine.asked for name in extras)


@pytest.mark.parametrize(
    "sent",
    [
        b"\x00\xff\x00\xff\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 20_000 + b"\r\n\r\n",
        b"POST /v1/models HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"",
    ],
)  # fmt: skip
async def test_what_is_no_http_ends_its_connection_alone(
    sent: bytes, caplog: pytest.LogCaptureFixture
):
    async with open_endpoint() as here:
        address = httpx.URL(here.url)
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(sent)
        writer.write_eof()
        assert b"Traceback" not in await reader.read()
        writer.close()
        assert (await here.client.post(TEXT, json=text("one"))).status_code == 200
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []
