"""What a node serves, as it says it in heartbeats, and as others show it and choose by it."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import pytest

from jupiterd.cluster.membership.failure_detector import Liveness
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.cluster.serving.serving_rows import NOTHING, SERVING
from jupiterd.cluster.text.node_page import page
from jupiterd.cluster.text.serving_words import serving_words
from jupiterd.ctl.diagnose.status import status_lines
from jupiterd.daemon.app.node import Node
from jupiterd.errors import BusyError
from jupiterd.ids import ArtifactId, NodeId
from tests.support.daemon.shown import status_of
from tests.support.daemon.two_nodes import serving, take_for_alive, unite, until
from tests.support.serving.written_engines import WrittenEngines, chat
from tests.support.serving.written_nodes import give_engines

MODEL = ServedModel("first-run", ArtifactId("a" * 64))


@dataclass
class Two:
    one: Node
    two: Node
    engines: WrittenEngines

    @property
    def other(self) -> NodeId:
        return self.two.identity.node_id

    def tell(self) -> None:
        """Let `two` beat once."""
        self.one.heartbeats.roster_changed()
        beat = self.two.heartbeats.message(self.one.identity.node_id)
        described = self.two.observers.description.describe()
        beat.about.CopyFrom(described.about)
        beat.telemetry = described.telemetry
        self.one.heartbeats.heard(self.other, beat)


@pytest.fixture
async def two(tmp_path: Path) -> AsyncGenerator[Two]:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two") as other:
        await unite(one, other)
        give_engines(one)
        yield Two(one, other, give_engines(other, WrittenEngines(token_s=0.02)))


async def test_who_serves_nothing_says_nothing(two: Two) -> None:
    assert SERVING not in two.two.observers.sources.serving.telemetry()
    two.tell()
    assert two.one.serving.report.of(two.other) == NOTHING
    assert all(node["serving"] == [] for node in status_of(two.one)["nodes"])


async def test_running_answers_are_told_to_others_and_shown_in_a_line(two: Two) -> None:
    async with two.two.serving.local.answering(MODEL, chat(100_000)) as answer:
        async with asyncio.timeout(10.0):
            async for _ in answer.chunks:
                if two.two.serving.report.own().models[0].tokens_per_s:
                    break
        two.tell()
        (row,) = [each for each in status_of(two.one)["nodes"] if each["id"] == two.other]
        (serves,) = row["serving"]
        assert (serves["model"], serves["answers"], serves["ready"]) == ("first-run", 1, True)
        assert 5 < serves["tokens_per_s"] < 60
        words = serving_words(row["serving"])
        assert words.startswith("first-run = aaaaaaaa, 1 answer, ")
        assert words.endswith(" tokens/s")
        lines = status_lines(status_of(two.one))
        assert f"models   two serves {words}" in lines
        assert any("serves" in line for line in page({"node": row}, draws=False))
    await two.engines.unload(MODEL)
    two.tell()
    assert two.one.serving.report.of(two.other) == NOTHING


async def test_a_request_of_one_node_is_answered_by_the_one_that_tells_of_the_model(
    two: Two,
) -> None:
    await two.engines.load(MODEL)
    two.tell()
    take_for_alive(two.one, two.two)
    two.one.local_view.liveness = lambda _: Liveness.ALIVE
    async with two.one.serving.router.answering(MODEL, chat(3)) as answer:
        got = b"".join([chunk async for chunk in answer.chunks])
    assert got.endswith(b"[DONE]\n\n")
    await until(lambda: two.engines.ended == ["whole"])


async def test_a_model_that_only_a_silent_node_has_is_said_to_be_there(two: Two) -> None:
    await two.engines.load(MODEL)
    two.tell()
    two.one.local_view.liveness = lambda _: Liveness.GONE
    with pytest.raises(BusyError, match="only on two, which is off or asleep since") as raised:
        async with two.one.serving.router.answering(MODEL, chat(3)):
            pass
    assert raised.value.hint == "wake it"


async def test_a_node_that_is_closing_takes_no_new_request(two: Two) -> None:
    await two.engines.load(MODEL)
    two.two.serving.local.close()
    assert not two.two.serving.report.own().is_open
    with pytest.raises(BusyError, match="takes no new requests"):
        async with two.two.serving.local.answering(MODEL, chat(3)):
            pass


async def test_what_became_of_requests_is_counted(two: Two) -> None:
    two.engines.token_s = 0.0
    local = two.two.serving.local
    async with local.answering(MODEL, chat(5)) as answer:
        _ = [chunk async for chunk in answer.chunks]
    two.engines.refuses = lambda _: BusyError("full")
    with pytest.raises(BusyError):
        async with local.answering(MODEL, chat(5)):
            pass
    totals = two.two.serving.report.totals
    assert totals.by_outcome() == {"answered": 1, "lost": 0, "refused": 1}
    assert totals.tokens == 5


async def test_a_node_that_lost_an_answer_is_asked_again_once_it_is_heard(two: Two) -> None:
    two.tell()
    fleet = two.one.serving.fleet

    def absence() -> str:
        return next(each.absence for each in fleet.nodes(MODEL, {}) if each.node == two.other)

    assert absence() == ""
    fleet.note_lost(two.other)
    assert absence() == "doesn't answer just now"
    two.tell()
    assert absence() == ""
