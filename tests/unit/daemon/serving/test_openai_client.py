"""The `openai` package against the endpoint, as its users call it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import openai
import pytest

from jupiterd.daemon.serving.endpoint_plan import EndpointPlan
from tests.support.daemon.two_nodes import until
from tests.support.serving.open_endpoint import OpenEndpoint, open_endpoint

pytestmark = pytest.mark.net

TOKEN = "0123456789abcdef" * 2
HELLO = [{"role": "user", "content": "one two three"}]


@asynccontextmanager
async def client_of(here: OpenEndpoint, key: str = TOKEN) -> AsyncGenerator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{here.url}/v1", api_key=key, max_retries=0) as client:
        yield client


async def test_a_conversation_is_answered_whole_and_streamed():
    async with open_endpoint() as here, client_of(here) as client:
        chat = client.chat.completions
        whole = await chat.create(model="promoted", messages=HELLO, max_tokens=2, temperature=0)
        assert whole.choices[0].message.content == "one two "
        assert whole.choices[0].finish_reason == "stop"
        assert whole.usage is not None
        assert whole.usage.completion_tokens == 2
        stream = await chat.create(
            model="promoted",
            messages=HELLO,
            stream=True,
            stream_options={"include_usage": True},
            seed=7,
            stop=["\n"],
        )
        chunks = [chunk async for chunk in stream]
        said = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
        assert said == ["one ", "two ", "three ", ""]
        assert {chunk.model for chunk in chunks} == {"promoted"}
        assert chunks[-1].usage is not None
        assert chunks[-1].usage.total_tokens == 6


async def test_a_text_is_gone_on_with_whole_and_streamed():
    async with open_endpoint() as here, client_of(here) as client:
        whole = await client.completions.create(model="python/2", prompt="one two", max_tokens=1)
        assert (whole.choices[0].text, whole.model) == ("one ", "python/2")
        stream = await client.completions.create(model="python/2", prompt="one two", stream=True)
        assert [chunk.choices[0].text async for chunk in stream] == ["one ", "two ", ""]


async def test_models_are_listed_and_retrieved():
    async with open_endpoint() as here, client_of(here) as client:
        assert [model.id async for model in client.models.list()] == ["promoted", "python/2"]
        assert (await client.models.retrieve("python/2")).owned_by == "jupiter"


async def test_what_goes_wrong_is_an_error_of_the_package():
    async with open_endpoint(EndpointPlan(port=0, token=TOKEN)) as here:
        async with client_of(here) as client:
            chat = client.chat.completions
            with pytest.raises(openai.BadRequestError) as caught:
                await chat.create(model="promoted", messages=HELLO, max_tokens=-1)
            assert caught.value.param == "max_tokens"
            with pytest.raises(openai.NotFoundError) as missing:
                await chat.create(model="nobody", messages=HELLO)
            assert missing.value.code == "model_not_found"
            busy = [{"role": "user", "content": "busy"}]
            with pytest.raises(openai.InternalServerError) as refused:
                await chat.create(model="promoted", messages=busy)
            assert refused.value.status_code == 503
            stream = await client.completions.create(
                model="promoted", prompt="die after 1", stream=True
            )
            with pytest.raises(openai.APIError, match="the engine died"):
                assert [chunk async for chunk in stream]
        async with client_of(here, "another token of some length") as stranger:
            with pytest.raises(openai.AuthenticationError):
                await stranger.models.list()


async def test_a_stream_that_is_closed_ends_its_generation():
    async with open_endpoint() as here, client_of(here) as client:
        with here.records.followed() as records:
            stream = await client.completions.create(
                model="promoted", prompt="hang on", stream=True
            )
            async for _ in stream:
                break
            await stream.close()
            assert (await records.get()).status == 499
        await until(lambda: here.engine.cancelled == 1)
