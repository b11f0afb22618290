"""A promotion while real engines write eight answers: none is lost, and the old one ends last."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from jupiterd.cluster.serving.promotion_follow import PROMOTED
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.daemon.serving.engine_pool import EnginePool
from jupiterd.daemon.serving.local_engines import AnswerCounts, LocalEngines
from jupiterd.daemon.serving.promotion_follower import PromotionFollower, model_of
from jupiterd.errors import NotFoundError
from jupiterd.ids import ArtifactId
from tests.support.daemons.cluster import is_running
from tests.support.serving.pools import chat, open_pool
from tests.support.serving.slow_models import write_chatty
from tests.unit.daemon.serving.test_promotion_follower import Ledger

pytest.importorskip("xllamacpp")
pytestmark = [pytest.mark.net, pytest.mark.full, pytest.mark.timeout(300)]

LOADED_WITHIN_S = 120.0
STREAMS = 8
TOKENS = 1500


@dataclass
class Here:
    pool: EnginePool
    ledger: Ledger
    follower: PromotionFollower
    local: LocalEngines
    models: list[ArtifactId]

    async def answer(self, tokens: int, begun: asyncio.Event | None = None) -> bytes:
        got = list[bytes]()
        asked = ServedModel(PROMOTED, self.models[-1])
        async with self.local.answering(asked, chat("the bread", max_tokens=tokens)) as answer:
            async for chunk in answer.chunks:
                got.append(chunk)
                if begun is not None:
                    begun.set()
        return b"".join(got)

    async def serves(self, artifact: ArtifactId) -> None:
        async with asyncio.timeout(LOADED_WITHIN_S):
            while self.follower.standing.serving != artifact:  # noqa: ASYNC110 - tells nobody
                await asyncio.sleep(0.05)

    def process(self, artifact: ArtifactId) -> psutil.Process:
        running = self.pool.running(model_of(artifact))
        assert running is not None
        return psutil.Process(running.process.pid)


@pytest.fixture
async def here(tmp_path: Path) -> AsyncGenerator[Here]:
    async with AsyncExitStack() as stack:
        pool = await stack.enter_async_context(open_pool(tmp_path))
        folders = [write_chatty(tmp_path / name, layers=layers)
                   for name, layers in (("old", 2), ("new", 3))]  # fmt: skip
        models = [pool._store.ingest(folder) for folder in folders]

        async def bring(artifact: ArtifactId) -> None:
            if artifact not in models:
                raise NotFoundError("nobody has it")

        group = await stack.enter_async_context(asyncio.TaskGroup())
        counts, ledger = AnswerCounts(), Ledger(models[0])
        follower = PromotionFollower(ledger, pool, counts.waiting, bring, group)
        local = LocalEngines(pool, follower, bring, counts)
        task = group.create_task(follower.run())
        follower.serve(is_wanted=True)
        yield Here(pool, ledger, follower, local, models)
        task.cancel()


async def test_eight_answers_end_on_the_old_engine_and_the_next_is_the_new_one_s(
    here: Here,
) -> None:
    old, new = here.models
    await here.serves(old)
    engine = here.process(old)
    begun = [asyncio.Event() for _ in range(STREAMS)]
    answers = [asyncio.ensure_future(here.answer(TOKENS, each)) for each in begun]
    async with asyncio.timeout(LOADED_WITHIN_S):
        await asyncio.gather(*(each.wait() for each in begun))
    here.ledger.promote(new)
    await here.serves(new)
    still = [answer for answer in answers if not answer.done()]
    assert still, "all answers were over before the new model was ready: nothing was shown"
    assert engine.is_running()
    assert b"data: [DONE]" in await here.answer(5)
    for answer in await asyncio.gather(*answers):
        assert answer.count(b'"finish_reason":"length"') == 1, "it wasn't written to its end"
        assert b"error" not in answer
        assert answer.rstrip().endswith(b"data: [DONE]")
    async with asyncio.timeout(LOADED_WITHIN_S):
        while is_running(engine.pid):  # noqa: ASYNC110 - a process tells nobody
            await asyncio.sleep(0.05)
    assert [model.artifact for model in here.pool.ready()] == [new]
