"""SmolLM2 answers from each engine that is installed, alone and for many, and stops when told."""

import asyncio
import time
from pathlib import Path

import pytest

from jupiterd.cluster.serving.engine_choice import LLAMA, MLX, TRANSFORMERS
from jupiterd.daemon.serving.engine_pool import EnginePool, PoolOptions
from jupiterd.daemon.serving.engines.engine_process import EngineProcess
from jupiterd.errors import EngineLostError, PromptTooLongError
from tests.real.smollm2 import NotInTheIndexError, model_folder
from tests.support.serving.pools import chat, completion, heard, in_folder, open_pool

pytestmark = [pytest.mark.real, pytest.mark.net, pytest.mark.timeout(1200)]
NEEDS = {LLAMA: "xllamacpp", MLX: "mlx_lm", TRANSFORMERS: "fastapi"}
LOOK_S = 0.2
STOPS_S = 1.0 + 2 * LOOK_S
"""A second for the generation to end, and what looking takes; engines notice between tokens."""


@pytest.fixture(scope="module")
def smollm2() -> Path:
    try:
        return model_folder()
    except NotInTheIndexError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("engine", list(NEEDS))
async def test_a_real_model_answers_and_stops(engine: str, smollm2: Path, tmp_path: Path) -> None:
    pytest.importorskip(NEEDS[engine])
    model = in_folder(smollm2, "smollm2")
    async with open_pool(tmp_path, PoolOptions(wanted=lambda: engine)) as pool:
        asked = chat("What is the capital of France?", max_tokens=12)
        await pool.load(model)
        began_s = time.monotonic()
        streamed = await heard(pool, model, asked)
        token_s = (time.monotonic() - began_s) / streamed.tokens
        assert "Paris" in streamed.text
        whole = await heard(pool, model, chat("What is the capital of France?", is_streamed=False,
                                              max_tokens=12))  # fmt: skip
        assert whole.text == streamed.text
        assert (await heard(pool, model, completion("The sea is", max_tokens=5))).tokens == 5
        many = await asyncio.gather(*(heard(pool, model, asked) for _ in range(8)))
        assert all("Paris" in each.text for each in many)
        with pytest.raises(PromptTooLongError, match="9,001 tokens, and the model's context 8,192"):
            await heard(pool, model, completion("word " * 9000))

        async with pool.answering(model, chat("Write a long story.", max_tokens=4000)) as answer:
            await anext(answer.chunks)
        left_s = time.monotonic()
        while await computes(process_of(pool)):
            pass
        print(f"{engine}: the generation ended within {time.monotonic() - left_s:.1f} s")
        assert time.monotonic() - left_s <= STOPS_S + 2 * token_s

        async with pool.answering(model, chat("Write a long story.", max_tokens=4000)) as answer:
            await anext(answer.chunks)
            process_of(pool).kill()
            killed_s = time.monotonic()
            with pytest.raises(EngineLostError, match="killed by SIGKILL"):
                async for _ in answer.chunks:
                    pass
        told_s = time.monotonic() - killed_s
        assert "Paris" in (await heard(pool, model, asked)).text
        again_s = time.monotonic() - killed_s
        print(f"{engine}: a killed engine was told after {told_s:.2f} s, answered {again_s:.1f} s")
        assert told_s < 2.0


def process_of(pool: EnginePool) -> EngineProcess:
    (model,) = pool.ready()
    running = pool.running(model)
    assert running is not None
    return running.process


async def computes(process: EngineProcess) -> bool:
    """Say whether a process takes processor time."""
    before_s = await process.processor_s()
    await asyncio.sleep(LOOK_S)  # there is no event for it
    return await process.processor_s() > before_s + 0.02
