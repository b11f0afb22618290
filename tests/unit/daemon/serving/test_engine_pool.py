"""A pool's engines are real child processes: llama.cpp's server, and mlx-lm's, with tiny models."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import psutil
import pytest

from jupiterd.adapter_folder import join
from jupiterd.cluster.serving.engine_choice import LLAMA, MLX
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.cluster.values.hardware import Gpu, Hardware
from jupiterd.daemon.serving.answering import Answer
from jupiterd.daemon.serving.engine_pool import EnginePool, PoolOptions
from jupiterd.daemon.serving.engines.engine_devices import EngineDevices
from jupiterd.daemon.serving.engines.engine_process import EngineProcess
from jupiterd.errors import (
    BusyError,
    EngineLostError,
    JupiterError,
    MissingExtraError,
    ModelNotServedError,
    PromptTooLongError,
    UnsupportedFieldError,
    UsageError,
)
from jupiterd.processes.device_loans import DeviceLoans
from jupiterd.processes.device_locks import device_locked
from tests.support.serving.pools import chat, completion, heard, in_folder, open_pool
from tests.support.serving.slow_models import CONTEXT, write_chatty

pytest.importorskip("xllamacpp")
pytestmark = [pytest.mark.net, pytest.mark.timeout(180)]

CARD = Gpu("a card", "GPU-1", 1 << 34, "cuda")
WITH_A_CARD = Hardware(
    "Linux", "x86_64", "a processor", 2, 16 << 30, (CARD,), ("torch",), devices=("cuda:0",)
)

STOPS_S = 5.0
"""A generation ends within a second (`tests/real`); a machine that tests is busy. To its end, the
answer would take many times as long."""
LOOK_S = 0.2

ENGINES = [
    LLAMA,
    pytest.param(MLX, marks=[pytest.mark.mlx, pytest.mark.full]),
]
each_engine = pytest.mark.parametrize("engine", ENGINES)


@pytest.fixture(scope="module")
def chatty(tmp_path_factory: pytest.TempPathFactory) -> ServedModel:
    return in_folder(write_chatty(tmp_path_factory.mktemp("models") / "chatty"))


@each_engine
async def test_an_engine_answers_in_all_forms(
    engine: str, chatty: ServedModel, tmp_path: Path
) -> None:
    async with open_pool(tmp_path, PoolOptions(wanted=lambda: engine)) as pool:
        streamed = await heard(pool, chatty, chat("the bread", max_tokens=12))
        whole = await heard(pool, chatty, chat("the bread", max_tokens=12, is_streamed=False))
        assert streamed.content_type == "text/event-stream"
        assert whole.content_type == "application/json"
        assert whole.text == streamed.text
        assert streamed.tokens == whole.tokens == 12
        assert whole.documents[0]["object"] == "chat.completion"
        assert whole.documents[0]["choices"][0]["finish_reason"] == "length"

        text = await heard(pool, chatty, completion("the bread", max_tokens=8))
        assert text.documents[0]["choices"][0]["text"] == text.text
        assert text.tokens == 8
        usual = await heard(pool, chatty, completion("the bread"))
        assert usual.tokens == 16

        with pytest.raises(PromptTooLongError, match=rf"tokens, and the model's .* {CONTEXT:,}"):
            await heard(pool, chatty, completion("of" * 2 * CONTEXT))
        with pytest.raises(UnsupportedFieldError, match="echo: "):
            await heard(pool, chatty, completion("the bread", echo=True))
        tool = {"type": "function", "function": {"name": "weather"}}
        with pytest.raises(UnsupportedFieldError, match="tool_choice: the chat template of tiny"):
            await heard(pool, chatty, chat("hi", tools=[tool], tool_choice="required"))
        free = await heard(pool, chatty, chat("the bread", max_tokens=12, tools=[tool]))
        assert free.text == streamed.text, "tools that the model can't use change nothing"
        assert pool.ready() == (chatty,)


@each_engine
async def test_an_engine_tells_how_likely_each_token_was(
    engine: str, chatty: ServedModel, tmp_path: Path
) -> None:
    async with open_pool(tmp_path, PoolOptions(wanted=lambda: engine)) as pool:
        for asked in (
            completion("the bread", max_tokens=3, logprobs=2, temperature=1.5, seed=1),
            chat("the bread", max_tokens=3, logprobs=True, top_logprobs=2, is_streamed=False),
        ):
            (choice,) = (await heard(pool, chatty, asked)).documents[0]["choices"]
            rows = choice["logprobs"]["content"]
            assert 0 < len(rows) <= 3  # llama.cpp tells of tokens that are part of a letter as one
            assert all(row["logprob"] <= 0 and isinstance(row["token"], str) for row in rows)
            for row in rows:
                first, second = row["top_logprobs"]
                assert first["logprob"] >= second["logprob"]
        (bare,) = (await heard(pool, chatty, completion("the", logprobs=0))).documents[0]["choices"]
        assert bare["logprobs"]["content"]


@each_engine
async def test_a_generation_ends_with_its_client_and_an_engine_with_its_process(
    engine: str, chatty: ServedModel, tmp_path: Path
) -> None:
    async with open_pool(tmp_path, PoolOptions(wanted=lambda: engine)) as pool:
        async with pool.answering(chatty, chat("the bread", max_tokens=CONTEXT)) as answer:
            await first_of(answer)
        process = process_of(pool, chatty)
        async with asyncio.timeout(STOPS_S):
            while await computes(process):
                pass
        leaving = asyncio.ensure_future(
            heard(pool, chatty, chat("the bread", is_streamed=False, max_tokens=CONTEXT))
        )
        async with asyncio.timeout(STOPS_S):
            while not await computes(process):
                pass
        leaving.cancel()
        async with asyncio.timeout(STOPS_S):
            while await computes(process):
                pass

        async with pool.answering(chatty, chat("the bread", max_tokens=CONTEXT)) as answer:
            await first_of(answer)
            process.kill()
            with pytest.raises(EngineLostError, match="it was killed by SIGKILL"):
                await rest_of(answer)
        after = await heard(pool, chatty, chat("the bread", max_tokens=3))
        assert after.tokens == 3
        assert process_of(pool, chatty) is not process


@pytest.mark.full
async def test_many_ask_at_a_time_and_each_is_answered(chatty: ServedModel, tmp_path: Path) -> None:
    async with open_pool(tmp_path, PoolOptions(wanted=lambda: LLAMA)) as pool:
        requests = [chat(f"the bread {n}", max_tokens=4) for n in range(40)]
        answers = await asyncio.gather(*(heard(pool, chatty, each) for each in requests))
        assert [each.tokens for each in answers] == [4] * 40
        assert len(pool.ready()) == 1


async def test_a_model_without_template_completes_and_doesnt_chat(tmp_path: Path) -> None:
    base = in_folder(write_chatty(tmp_path / "base", is_chat=False), "base")
    async with open_pool(tmp_path) as pool:
        assert (await heard(pool, base, completion("the bread", max_tokens=3))).tokens == 3
        with pytest.raises(UsageError, match="base has no chat template") as raised:
            await heard(pool, base, chat("hi"))
        assert "/v1/completions" in raised.value.hint


@pytest.mark.full
async def test_an_idle_engine_is_unloaded_and_a_held_one_stays(
    chatty: ServedModel, tmp_path: Path
) -> None:
    async with open_pool(tmp_path, PoolOptions(wanted=lambda: LLAMA, idle_s=0.2)) as pool:
        await pool.load(chatty)
        process = process_of(pool, chatty)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0):
                await process.ended
        await pool.unload(chatty)
        assert (pool.ready(), pool.loading()) == ((), ())
        await heard(pool, chatty, completion("the bread"))
        async with asyncio.timeout(30.0):
            while pool.ready():  # noqa: ASYNC110 - it is looked at
                await asyncio.sleep(LOOK_S)


@each_engine
async def test_nobody_else_on_the_machine_can_ask_an_engine(
    chatty: ServedModel, tmp_path: Path, engine: str
) -> None:
    async with open_pool(tmp_path, PoolOptions(wanted=lambda: engine)) as pool:
        await pool.load(chatty)
        running = pool.running(chatty)
        assert running is not None
        asked = {"model": running.model_field, "prompt": "a", "max_tokens": 1}
        url = f"{running.client.url}/v1/completions"
        async with httpx.AsyncClient(trust_env=False) as stranger:
            assert (await stranger.post(url, json=asked)).status_code == 401
            wrong = {"Authorization": "Bearer guessed"}
            assert (await stranger.post(url, json=asked, headers=wrong)).status_code == 401
            answer = await stranger.post(url, json=asked, headers=dict(running.client.headers))
            assert answer.status_code == 200
        told = [
            psutil.Process(running.process.pid),
            *psutil.Process(running.process.pid).children(),
        ]
        key = running.client.headers["Authorization"].removeprefix("Bearer ")
        assert not any(key in word for process in told for word in process.cmdline())


async def test_a_model_that_no_engine_reads_is_told_with_each_reason(
    chatty: ServedModel, tmp_path: Path
) -> None:
    folder = write_chatty(tmp_path / "broken")
    (folder / "model.safetensors").write_bytes(b"nothing")
    async with open_pool(tmp_path, PoolOptions(wanted=lambda: LLAMA)) as pool:
        with pytest.raises(Exception, match=r"model\.safetensors is cut off"):
            await heard(pool, in_folder(folder), chat("hi"))
        odd = write_chatty(tmp_path / "odd")
        (odd / "config.json").write_text('{"model_type": "llama", "num_hidden_layers": [[]]}')
        header = b'{"weight": {"shape": 7}}'
        (odd / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
        with pytest.raises(JupiterError):
            await heard(pool, in_folder(odd), chat("hi"))
        missing = in_folder(tmp_path / "nowhere")
        with pytest.raises(ModelNotServedError, match="nowhere"):
            await heard(pool, missing, chat("hi"))
        assert (await heard(pool, chatty, completion("the bread"))).tokens == 16


async def test_an_engine_that_isnt_installed_is_named(chatty: ServedModel, tmp_path: Path) -> None:
    async with open_pool(tmp_path, PoolOptions(wanted=lambda: "vllm")) as pool:
        with pytest.raises(MissingExtraError, match="vllm: it needs an NVIDIA GPU"):
            await heard(pool, chatty, chat("hi"))


async def test_a_training_on_the_same_gpu_goes_first(chatty: ServedModel, tmp_path: Path) -> None:
    """llama.cpp computes on the processor here; what is tried is who has the GPU's lock."""
    locks = tmp_path / "locks"
    devices = EngineDevices(WITH_A_CARD, DeviceLoans(locks), folder=locks)
    async with open_pool(tmp_path, PoolOptions(wanted=lambda: LLAMA), devices) as pool:
        async with device_locked("GPU-1", "a gang", locks):
            with pytest.raises(BusyError, match="held by a gang") as raised:
                await heard(pool, chatty, completion("the bread"))
            assert raised.value.retry_after_s > 1.0
        async with pool.answering(chatty, chat("the bread", max_tokens=CONTEXT)) as answer:
            await first_of(answer)
            async with device_locked("GPU-1", "a gang", locks):
                with pytest.raises(EngineLostError, match="its GPU is wanted by a gang"):
                    await rest_of(answer)


@pytest.mark.full
async def test_pinned_models_keep_a_training_from_their_gpu(
    chatty: ServedModel, tmp_path: Path
) -> None:
    locks = tmp_path / "locks"
    devices = EngineDevices(WITH_A_CARD, DeviceLoans(locks), is_pinned=lambda: True, folder=locks)
    async with open_pool(tmp_path, PoolOptions(wanted=lambda: LLAMA), devices) as pool:
        await pool.load(chatty)
        with pytest.raises(Exception, match="held by the model tiny"):
            async with device_locked("GPU-1", "a gang", locks):
                pass
        await pool.unload(chatty)
        async with device_locked("GPU-1", "a gang", locks) as descriptor:
            assert descriptor is not None


async def test_an_answer_of_a_model_that_is_unloaded_ends_with_that_reason(
    chatty: ServedModel, tmp_path: Path
) -> None:
    async with open_pool(tmp_path, PoolOptions(wanted=lambda: LLAMA)) as pool:
        await pool.load(chatty)
        async with pool.answering(chatty, chat("the bread", max_tokens=CONTEXT)) as answer:
            await first_of(answer)
            unloading = asyncio.ensure_future(pool.unload(chatty))
            with pytest.raises(EngineLostError, match="its model was unloaded"):
                await rest_of(answer)
        await unloading


async def test_no_engine_outlives_its_keeper(chatty: ServedModel, tmp_path: Path) -> None:
    async with open_pool(tmp_path, PoolOptions(wanted=lambda: LLAMA)) as pool:
        await pool.load(chatty)
        process = process_of(pool, chatty)
        os.kill(process.pid, signal.SIGKILL)
        async with asyncio.timeout(10.0):
            await process.ended
            while await process.ports():
                pass


async def first_of(answer: Answer) -> bytes:
    chunks: AsyncIterator[bytes] = answer.chunks
    return await anext(chunks)


async def rest_of(answer: Answer) -> bytes:
    return b"".join([chunk async for chunk in answer.chunks])


def process_of(pool: EnginePool, model: ServedModel) -> EngineProcess:
    running = pool.running(model)
    assert running is not None
    return running.process


async def computes(process: EngineProcess) -> bool:
    """Say whether a process takes processor time."""
    before_s = await process.processor_s()
    await asyncio.sleep(LOOK_S)  # there is no event for it
    return await process.processor_s() > before_s + 0.01


async def test_an_adapter_s_folder_that_was_not_joined_here_may_lead_nowhere(
    tmp_path: Path,
) -> None:
    """A stranger could pack a link to any folder of this machine with what he calls an adapter."""
    base = write_chatty(tmp_path / "base")
    adapter = tmp_path / "theirs"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text("{}")
    (adapter / "adapter_model.safetensors").write_bytes(b"")
    packed = join(adapter, base, tmp_path / "packed")
    async with open_pool(tmp_path) as pool:
        scratch = tmp_path / "state" / "scratch"
        for place in (packed, scratch / ".." / ".." / "packed"):
            with pytest.raises(UsageError, match="leads out of it"):
                await heard(pool, in_folder(place), chat("hi"))
