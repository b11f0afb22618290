"""The name `promoted` on a running node: promotions and rollbacks while answers are written."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from jupiterd.cluster.serving.promotion_follow import PROMOTED
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.daemon.serving import promotion_follower
from jupiterd.daemon.serving.local_engines import AnswerCounts, LocalEngines
from jupiterd.daemon.serving.promotion_follower import PromotionFollower, model_of
from jupiterd.errors import BusyError, CorruptWeightsError, ModelNotServedError, NotFoundError
from jupiterd.ids import ArtifactId
from tests.support.daemon.two_nodes import until
from tests.support.serving.written_engines import NO_ROOM, WrittenEngines, chat

OLD, NEW = ArtifactId("a" * 64), ArtifactId("b" * 64)
ASKED = ServedModel(PROMOTED, NEW)
"""As an endpoint names it that has heard of the newest promotion."""


@dataclass
class Ledger:
    """What is promoted, without the facts behind it."""

    promoted: ArtifactId | None = None
    version: int = 0
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def derived(self, _: Callable[..., Any]) -> Any:
        return self.promoted

    async def changed_since(self, version: int) -> int:
        while version == self.version:
            await self._changed.wait()
        return self.version

    def promote(self, artifact: ArtifactId) -> None:
        self.promoted, self.version = artifact, self.version + 1
        self._changed.set()
        self._changed = asyncio.Event()


@dataclass
class Here:
    """One node that serves `promoted`."""

    ledger: Ledger
    engines: WrittenEngines
    follower: PromotionFollower
    local: LocalEngines
    missing: set[ArtifactId]

    async def ask(self, tokens: int = 3) -> bytes:
        async with self.local.answering(ASKED, chat(tokens)) as answer:
            return b"".join([chunk async for chunk in answer.chunks])

    async def serves(self, artifact: ArtifactId) -> None:
        await until(lambda: self.follower.standing.serving == artifact)


@asynccontextmanager
async def serving(promoted: ArtifactId | None = OLD, **more: Any) -> AsyncGenerator[Here]:
    engines, ledger, missing = WrittenEngines(**more), Ledger(promoted), set[ArtifactId]()

    async def bring(artifact: ArtifactId) -> None:
        if artifact in missing:
            raise NotFoundError("no node that can be reached holds it")

    async with asyncio.TaskGroup() as group:
        counts = AnswerCounts()
        follower = PromotionFollower(ledger, engines, counts.waiting, bring, group)
        local = LocalEngines(engines, follower, bring, counts)
        task = group.create_task(follower.run())
        follower.serve(is_wanted=True)
        yield Here(ledger, engines, follower, local, missing)
        task.cancel()


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(promotion_follower, "LOOK_S", 0.01)
    monkeypatch.setattr(promotion_follower, "IDLE_LOOK_S", 0.05)


async def test_the_first_request_waits_for_the_first_model() -> None:
    async with serving(load_s=0.1) as here:
        assert OLD.encode() in await here.ask()


async def test_eight_running_answers_end_on_the_old_model_and_none_is_mixed() -> None:
    async with serving(token_s=0.02, load_s=0.1) as here:
        await here.serves(OLD)
        before = [asyncio.ensure_future(here.ask(30)) for _ in range(8)]
        await until(lambda: len(here.engines.running) == 8)
        here.ledger.promote(NEW)
        await here.serves(NEW)
        assert len(here.engines.running) == 8, "answers were cut by the promotion"
        after = [asyncio.ensure_future(here.ask(5)) for _ in range(4)]
        for of, found in ((OLD, before), (NEW, after)):
            for answer in await asyncio.gather(*found):
                assert answer.endswith(b"[DONE]\n\n")
                assert (OLD.encode() in answer, NEW.encode() in answer) == (of == OLD, of == NEW)
        await until(lambda: here.engines.ready() == [model_of(NEW)])
        assert here.engines.ended == ["whole"] * 12


async def test_requests_are_answered_all_the_time_while_promotions_come_and_go() -> None:
    async with serving(token_s=0.001, load_s=0.02) as here:
        await here.serves(OLD)
        is_over = False

        async def client() -> list[bytes]:
            got = list[bytes]()
            while not is_over:
                got.append(await here.ask(4))
            return got

        clients = [asyncio.ensure_future(client()) for _ in range(6)]
        for wanted in (NEW, OLD, NEW, OLD):
            here.ledger.promote(wanted)
            await here.serves(wanted)
        is_over = True
        answers = [each for got in await asyncio.gather(*clients) for each in got]
    assert len(answers) >= 6
    for answer in answers:
        assert answer.endswith(b"[DONE]\n\n")
        assert (OLD.encode() in answer) != (NEW.encode() in answer)


async def test_a_rollback_while_answers_run_goes_back_without_loading_again() -> None:
    async with serving(token_s=0.02) as here:
        await here.serves(OLD)
        running = asyncio.ensure_future(here.ask(1000))
        await until(lambda: len(here.engines.running) == 1)
        here.ledger.promote(NEW)
        await here.serves(NEW)
        here.engines.broken[model_of(OLD)] = NO_ROOM  # a load would fail
        here.ledger.promote(OLD)
        await here.serves(OLD)
        assert not running.done()
        running.cancel()


async def test_a_model_that_cannot_be_loaded_leaves_the_old_one_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with serving() as here:
        await here.serves(OLD)
        here.engines.broken[model_of(NEW)] = NO_ROOM
        here.ledger.promote(NEW)
        await until(lambda: here.follower.trouble == "there is no room for it")
        assert OLD.encode() in await here.ask()
    assert "promoted_model_failed" in caplog.text


async def test_a_model_that_nobody_in_reach_has_leaves_the_old_one() -> None:
    async with serving() as here:
        await here.serves(OLD)
        here.missing.add(NEW)
        here.ledger.promote(NEW)
        await until(lambda: "holds it" in here.follower.trouble)
        assert OLD.encode() in await here.ask()


async def test_a_load_that_fails_as_nobody_foresaw_leaves_the_old_model_and_the_daemon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving() as here:
        await here.serves(OLD)

        async def load(_: ServedModel) -> None:
            raise RecursionError("a config.json of a stranger")

        monkeypatch.setattr(here.engines, "load", load)
        here.ledger.promote(NEW)
        await until(lambda: "a config.json of a stranger" in here.follower.trouble)
        assert OLD.encode() in await here.ask()


async def test_an_engine_that_died_is_loaded_again() -> None:
    async with serving() as here:
        await here.serves(OLD)
        here.engines.held.clear()
        await until(lambda: here.engines.ready() == [model_of(OLD)])


async def test_where_nothing_was_promoted_a_request_is_told_so() -> None:
    async with serving(None) as here:
        with pytest.raises(ModelNotServedError, match="no model is promoted"):
            await here.ask()


async def test_a_first_model_that_cannot_be_loaded_is_told() -> None:
    async with serving(None) as here:
        here.engines.broken[model_of(NEW)] = NO_ROOM
        here.ledger.promote(NEW)
        await until(lambda: bool(here.follower.trouble))
        with pytest.raises(BusyError, match="there is no room for it"):
            await here.ask()


async def test_damage_that_no_waiting_mends_is_no_reason_to_ask_again() -> None:
    async with serving(None) as here:
        here.engines.broken[model_of(NEW)] = CorruptWeightsError("a file is cut off")
        here.ledger.promote(NEW)
        await until(lambda: bool(here.follower.trouble))
        with pytest.raises(CorruptWeightsError, match="a file is cut off"):
            await here.ask()


async def test_whoever_serves_the_name_no_more_unloads_it() -> None:
    async with serving() as here:
        await here.serves(OLD)
        here.follower.serve(is_wanted=False)
        await until(lambda: not here.engines.held)


async def test_a_node_that_does_not_follow_answers_with_the_model_that_is_named() -> None:
    async with serving() as here:
        here.follower.serve(is_wanted=False)
        assert NEW.encode() in await here.ask()
