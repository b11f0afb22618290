"""SmolLM2 behind the endpoint, asked with the `openai` package and over HTTP."""

import time
from pathlib import Path

import httpx
import openai
import pytest

from tests.support.daemons.cluster import Cluster
from tests.support.serving.served_command import served_command

pytestmark = [pytest.mark.real, pytest.mark.net, pytest.mark.timeout(600)]

PARIS = [{"role": "user", "content": "What is the capital of France?"}]
COUNTING = "1, 2, 3, 4, 5,"


async def test_the_openai_package_chats_with_it_and_goes_on_with_texts(
    model: Path, alone: Cluster
) -> None:
    async with (
        served_command(alone[0].state_dir, str(model)) as serving,
        openai.AsyncOpenAI(base_url=serving.url, api_key="none", timeout=300) as client,
    ):
        name = model.name
        assert serving.opened["models"] == [name]
        assert [each.id async for each in client.models.list()] == [name]
        whole = await client.chat.completions.create(
            model=name, messages=PARIS, max_tokens=24, temperature=0
        )
        assert "Paris" in str(whole.choices[0].message.content)
        assert whole.model == name
        assert whole.usage is not None
        assert whole.usage.prompt_tokens > whole.usage.completion_tokens > 2
        stream = await client.chat.completions.create(
            model=name,
            messages=PARIS,
            max_tokens=24,
            temperature=0,
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
        pieces = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
        assert "".join(pieces) == whole.choices[0].message.content
        assert chunks[-1].usage is not None
        assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
        text = await client.completions.create(
            model=name, prompt=COUNTING, max_tokens=8, temperature=0, stop=["8"], logprobs=2
        )
        assert "6" in text.choices[0].text
        assert "8" not in text.choices[0].text
        logprobs = text.choices[0].logprobs
        assert logprobs is not None
        assert logprobs.tokens
        assert all(each is not None and each <= 0 for each in logprobs.token_logprobs or ())
        drawn = [
            await client.completions.create(
                model=name, prompt=COUNTING, max_tokens=8, temperature=1, seed=seed
            )
            for seed in (7, 7)
        ]
        assert drawn[0].choices[0].text == drawn[1].choices[0].text


async def test_what_open_webui_sends_is_answered(model: Path, alone: Cluster) -> None:
    """Its calls for one message, as 0.12.4 makes them: tools of its own, then a title."""
    tools = [
        {"type": "function", "function": {
            "name": f"tool_{number}", "description": "Get the time.",
            "parameters": {"properties": {}, "type": "object"},
        }}
        for number in range(36)
    ]  # fmt: skip
    chat = {"model": model.name, "messages": PARIS}
    async with (
        served_command(alone[0].state_dir, str(model)) as serving,
        httpx.AsyncClient(
            base_url=serving.url, timeout=300, headers={"Authorization": "Bearer none"}
        ) as client,
    ):
        listed = (await client.get("models")).json()["data"]
        assert [each["id"] for each in listed] == [model.name]
        streamed = await client.post(
            "chat/completions", json={"stream": True, **chat, "tools": tools}
        )
        assert streamed.status_code == 200
        assert streamed.text.rstrip().endswith("data: [DONE]")
        assert (await serving.next_request())["left_out"] == "tools"
        title = await client.post(
            "chat/completions", json={**chat, "stream": False, "max_tokens": 1000}
        )
        assert "Paris" in title.json()["choices"][0]["message"]["content"]


async def test_what_it_can_not_do_is_refused_and_who_goes_away_stops_it(
    model: Path, alone: Cluster
) -> None:
    async with served_command(alone[0].state_dir, str(model)) as serving:
        body = {"model": model.name, "prompt": "word " * 20_000}
        async with httpx.AsyncClient(base_url=serving.url, timeout=300) as client:
            long = await client.post("/completions", json=body)
            assert long.status_code == 400
            error = long.json()["error"]
            assert error["code"] == "context_length_exceeded"
            assert "8,192" in error["message"], "both numbers are told"
            assert (await serving.next_request())["status"] == 400
            endless = {"model": model.name, "prompt": COUNTING, "max_tokens": 4000, "stream": True}
            async with client.stream("POST", "/completions", json=endless) as response:
                async for line in response.aiter_lines():
                    if line:
                        break
            left_s = time.monotonic()
            assert (await serving.next_request())["status"] == 499
            assert time.monotonic() - left_s < 1
