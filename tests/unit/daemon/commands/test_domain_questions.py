"""A domain's own questions on their way into a cycle, and from there to any node."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupiterd.cluster.facts.facts import CheckpointCommitted
from jupiterd.cycle.domain.domain import parse_domain
from jupiterd.cycle.questions.question_file import QUESTIONS, QUESTIONS_FILE
from jupiterd.cycle.runs.recorded_settings import questions_of
from jupiterd.daemon.commands.domain_questions import (
    bring_questions,
    check_questions,
    recorded_questions,
)
from jupiterd.daemon.leader.artifact_reach import ArtifactReach
from jupiterd.daemon.queries.cycle.questions_document import questions_document
from jupiterd.errors import NotFoundError, UsageError
from jupiterd.ids import ArtifactId, CycleId
from jupiterd.protocol.commands.cycle_commands import StartCycle
from jupiterd.store.artifacts import ArtifactStore
from tests.support.cluster.building import CYCLE, started
from tests.support.cycle.round_walk import DOMAIN
from tests.support.daemon.two_nodes import found, serving

TEXT = '{"question": "Who wrote it?", "answer": "Ada"}\n'
ASKED = StartCycle(domain_name="tiny", domain_yaml="")
OWN = parse_domain(f"{DOMAIN}evaluation: {{questions: own.jsonl}}\n", "tiny.yaml")
MODEL, BASE = ArtifactId("11bb11aa" * 8), ArtifactId("22cc22aa" * 8)


async def stored(folder: Path, text: str = TEXT) -> tuple[ArtifactStore, StartCycle]:
    store, spool = ArtifactStore(folder / "store"), folder / "spool"
    spool.mkdir(exist_ok=True)
    brought = await bring_questions(store, spool, replace(ASKED, questions_text=text))
    assert not list(spool.iterdir())
    return store, brought


async def test_their_text_becomes_an_artifact_that_the_cycles_record_names(tmp_path: Path) -> None:
    store, brought = await stored(tmp_path)
    assert brought.questions_text is None
    assert (store.path(ArtifactId(brought.questions or "")) / QUESTIONS_FILE).read_text() == TEXT
    recorded = recorded_questions(OWN, brought)
    assert questions_of(recorded) == brought.questions
    _, again = await stored(tmp_path)
    assert again.questions == brought.questions, "the same questions are the same artifact"


async def test_a_domain_without_questions_records_nothing(tmp_path: Path) -> None:
    plain = parse_domain(DOMAIN, "tiny.yaml")
    assert recorded_questions(plain, ASKED) == {}
    assert await bring_questions(ArtifactStore(tmp_path), tmp_path, ASKED) == ASKED


async def test_what_is_no_question_is_refused_whoever_sends_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="line 1 of the domain's questions"):
        await stored(tmp_path, "{}")


def test_a_command_that_lacks_the_domains_questions_is_refused() -> None:
    with pytest.raises(UsageError, match="the questions of tiny weren't read"):
        recorded_questions(OWN, ASKED)
    tried = replace(ASKED, questions_text=TEXT)
    assert recorded_questions(OWN, tried) == {}, "a dry run has stored nothing"


class Reach(ArtifactReach):
    """A reach in which one artifact is."""

    def __init__(self, known: str) -> None:
        self.known = known

    async def is_in_reach(self, artifact: str) -> bool:
        return artifact == self.known


async def test_a_cycle_begins_only_where_its_questions_can_be_had() -> None:
    asks = replace(started(), settings={QUESTIONS: MODEL})
    await check_questions(Reach(MODEL), asks)
    await check_questions(Reach(""), started())
    with pytest.raises(NotFoundError, match="no node in reach holds the questions"):
        await check_questions(Reach(BASE), asks)


@pytest.mark.net
async def test_any_node_tells_where_the_questions_of_a_models_cycle_lie(tmp_path: Path) -> None:
    _, brought = await stored(tmp_path / "made")
    stored_as = ArtifactId(brought.questions or "")
    made = tmp_path / "made" / "file"
    made.mkdir()
    (made / QUESTIONS_FILE).write_text(TEXT)
    settings: dict[str, Any] = {QUESTIONS: stored_as, "start_from": BASE}
    later = replace(
        started(),
        cycle=CycleId("e" * 16),
        started_at="2026-02-01T00:00:00Z",
        settings={"start_from": BASE},
    )
    trained = CheckpointCommitted(CYCLE, 1, "", MODEL, 1, 100, 1000, 400, 3.5, True)
    own = replace(trained, cycle=later.cycle, artifact=ArtifactId("33dd33aa" * 8))
    async with serving(tmp_path, "one") as one:
        asks = replace(started(), settings=settings)
        await found(one, facts=(asks, trained, later, own))
        state, cache = one.replica.state, one.artifact_cache
        with pytest.raises(NotFoundError, match="nobody in reach has the questions of python"):
            await questions_document(state, cache, MODEL)
        assert cache.store.ingest(made) == stored_as
        for wanted in (MODEL, BASE, f"{CYCLE}/1", ""):
            told = (await questions_document(state, cache, wanted))["questions"]
            assert (told["domain"], told["cycle"]) == ("python", CYCLE), wanted
            assert Path(told["file"]) == cache.store.path(stored_as) / QUESTIONS_FILE
        none = await questions_document(state, cache, own.artifact)
        assert none["questions"] is None, "that cycle has none"
        none = await questions_document(state, cache, "99ee99bb" * 8)
        assert none["questions"] is None, "what a training run began with is of no cycle"
        with pytest.raises(NotFoundError, match="there is no model"):
            await questions_document(state, cache, "nobody")
