"""Which verdict is meant, and where it and what it was made of lie."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupiterd.cluster.facts.facts import (
    CheckpointCommitted,
    RoundCommitted,
    VerdictReached,
    WorkCompleted,
)
from jupiterd.ctl.cycle.verdict_folder import decide_again
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.gate.case import Findings
from jupiterd.cycle.gate.record import Material
from jupiterd.cycle.generation.asked_prompts import AskedPrompt
from jupiterd.cycle.generation.round_answers import (
    ANSWERS,
    ANSWERS_FILE,
    CANDIDATE,
    INCUMBENT,
    TROUBLE,
    RoundAnswers,
)
from jupiterd.cycle.phases.view import item_id
from jupiterd.cycle.questions.round_grades import TROUBLE as OWN_TROUBLE
from jupiterd.cycle.questions.round_grades import grade_counts
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.queries.cycle.answers_of_round import NOT_IN_REACH
from jupiterd.daemon.queries.cycle.verdict_document import verdict_document
from jupiterd.errors import NotFoundError, UsageError
from jupiterd.ids import ArtifactId, CycleId
from jupiterd.workers.evaluate.gate_verdict import write_verdict
from jupiterd.workers.evaluate.score_file import write_scores, write_text
from tests.support.cluster.building import CYCLE, started
from tests.support.cycle.gate_material import documents
from tests.support.daemon.two_nodes import found, serving
from tests.unit.ctl.cycle.test_gate import GIVEN

FIRST, SECOND = ArtifactId("11bb11aa" * 8), ArtifactId("11bb11bb" * 8)


def stored(node: Node, folder: Path, given: dict[str, Any]) -> tuple[ArtifactId, ArtifactId]:
    """Return the artifacts of a verdict and of the scores it was made of."""
    rows = documents(random.Random(3), 0.05)
    write_scores(folder / "scores", rows)
    scores = node.artifact_cache.store.ingest(folder / "scores")
    told = {**GIVEN, **given, "scores": {"scores.0": scores}}
    write_verdict(folder / "verdict", Material(rows, Findings()), told)
    return node.artifact_cache.store.ingest(folder / "verdict"), scores


async def judged(node: Node, folder: Path) -> list[tuple[ArtifactId, ArtifactId]]:
    """Let a cycle be known whose two rounds were judged; the second beside the first."""
    models = [("", FIRST), (FIRST, SECOND)]
    made = [
        stored(node, folder / ours, {"candidate": ours, "incumbent": theirs, "round": number})
        for number, (theirs, ours) in enumerate(models, 1)
    ]
    facts = [
        fact
        for number, ((theirs, ours), (artifact, _)) in enumerate(zip(models, made, strict=True), 1)
        for fact in (
            CheckpointCommitted(CYCLE, number, theirs, ours, 1, 100, 1000, 400, 3.5, True),
            VerdictReached(CYCLE, number, "PROMOTE", "why", 2.5, artifact, ours, theirs),
            RoundCommitted(CYCLE, number, ours, "PROMOTE", ours),
        )
    ]
    await found(node, facts=(started(), *facts))
    return made


async def asked(node: Node, wanted: str) -> dict[str, Any]:
    return (await verdict_document(node.replica.state, node.artifact_cache, wanted))["verdict"]


async def test_the_last_verdict_is_meant_unless_one_is_named(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await judged(one, tmp_path / "made")
        for wanted in ("", "2", SECOND, SECOND[:8], f"2:{FIRST[:8]}", "2:1", f":{FIRST}"):
            assert (await asked(one, wanted))["round"] == 2
        for wanted in ("1", FIRST[:8]):
            assert (await asked(one, wanted))["round"] == 1


async def test_the_verdicts_of_any_cycle_are_named_by_it_and_its_round(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await judged(one, tmp_path / "made")
        later = replace(started(), cycle=CycleId("e" * 16), started_at="2026-02-01T00:00:00Z")
        own = CheckpointCommitted(later.cycle, 1, "", FIRST, 1, 100, 1000, 400, 3.5, True)
        over = RoundCommitted(later.cycle, 1, FIRST, "HOLD", "")
        folder = next(iter(one.replica.state.cycles[CYCLE].verdicts.values())).artifact
        held = VerdictReached(later.cycle, 1, "HOLD", "why", 2.5, folder, FIRST, "")
        await one.replica.append(1, [later, own, held, over])
        for wanted, number, said in (
            ("dddd", 2, "PROMOTE"), ("dddd/1", 1, "PROMOTE"), ("python", 1, "HOLD"),
            ("eeee/1", 1, "HOLD"), ("1", 1, "HOLD"),
        ):  # fmt: skip
            told = await asked(one, wanted)
            assert (told["round"], told["verdict"]) == (number, said), wanted
        for wanted, why in (("eeee/2", "round 2 of eeee"), ("cooking", "nor on a cycle")):
            with pytest.raises(NotFoundError, match=why):
                await asked(one, wanted)


async def test_what_it_names_comes_to_the_same_verdict(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        (_, scores), _ = await judged(one, tmp_path / "made")
        told = await asked(one, "1")
        material = [Path(each) for each in told["material"]]
        assert material == [one.artifact_cache.store.path(scores)]
        done = decide_again(Path(told["folder"]), material)
    assert done.is_same
    assert done.again["verdict"]["decision"] == "PROMOTE"


NOTHING = {"models": {"base": None, "incumbent": None, "candidate": None}, "rows": []}


async def _answered(node: Node, folder: Path, text: str, **summary: str) -> ArtifactId:
    """Let it be known what the models of round 2 answered; return the artifact."""
    write_text(folder / "answers" / ANSWERS_FILE, text)
    artifact = node.artifact_cache.store.ingest(folder / "answers")
    item, own = item_id(2, Phase.EVALUATE, 0, SECOND), node.identity.node_id
    fact = WorkCompleted(
        CYCLE, 2, Phase.EVALUATE, item, own, {ANSWERS: artifact}, {}, dict(summary)
    )
    await node.replica.append(2, [fact])
    return artifact


async def test_answers_stand_beside_the_verdict_of_their_round(tmp_path: Path) -> None:
    models, asked_for = {CANDIDATE: SECOND, INCUMBENT: FIRST}, (AskedPrompt("d" * 64, "def f("),)
    answers = RoundAnswers(models, asked_for, {SECOND: ("x):",)})
    async with serving(tmp_path, "one") as one:
        await judged(one, tmp_path / "made")
        assert (await asked(one, "2"))["answers"] == {"trouble": None, **NOTHING}  # an older round
        trouble = "incumbent: no model can be read"
        artifact = await _answered(one, tmp_path, answers.to_json(), **{TROUBLE: trouble})
        told = (await asked(one, "2"))["answers"]
        assert told == {"trouble": trouble, **answers.to_plain()}
        assert told["rows"][0][CANDIDATE] == "x):"
        assert (await asked(one, "1"))["answers"]["rows"] == []
        one.artifact_cache.store.remove(artifact)
        assert (await asked(one, "2"))["answers"] == {"trouble": NOT_IN_REACH, **NOTHING}


async def test_the_domains_own_questions_are_told_below_the_reasons(tmp_path: Path) -> None:
    item = item_id(2, Phase.EVALUATE, 0, SECOND)
    counts = grade_counts(20, {SECOND: 14, FIRST: 9}, SECOND)
    async with serving(tmp_path, "one") as one:
        await judged(one, tmp_path / "made")
        assert (await asked(one, "2"))["own_questions"] is None
        reasons = (await asked(one, "2"))["explained"]
        summary = {OWN_TROUBLE: "base: no model can be read"}
        own = WorkCompleted(
            CYCLE, 2, Phase.EVALUATE, item, one.identity.node_id, {}, counts, summary
        )
        await one.replica.append(2, [own])
        told = await asked(one, "2")
    assert told["own_questions"]["models"][SECOND] | {"low": 0, "high": 0} == {
        "right": 14, "questions": 20, "low": 0, "high": 0,
    }  # fmt: skip
    assert told["explained"] == [
        *reasons,
        "",
        (
            "Your own questions: the candidate 14 of 20 right (95 %: 48 to 85 %); "
            "the last student 9 of 20 right (95 %: 26 to 66 %)."
        ),
        "Your own questions weren't asked of all: base: no model can be read.",
    ]


async def test_a_damaged_file_of_answers_leaves_the_verdict_as_it_is(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await judged(one, tmp_path / "made")
        await _answered(one, tmp_path, '{"models": 3}')
        told = await asked(one, "2")
        assert (told["verdict"], told["answers"]["rows"]) == ("PROMOTE", [])
        assert told["answers"]["trouble"] is not None


async def test_where_the_scores_have_gone_the_verdict_s_own_copy_is_named(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        (_, scores), _ = await judged(one, tmp_path / "made")
        one.artifact_cache.store.remove(scores)
        told = await asked(one, "1")
    assert told["material"] == [told["folder"]]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("3", "no verdict on round 3"),
        ("ffffff", "no verdict on a model ffffff"),
        ("11b", "no verdict on a model 11b"),
        ("1:2", "round 1 was compared with a baseline, not with 2"),
        (f"2:{SECOND[:8]}", "round 2 was compared with 11bb11aa and a baseline, not with"),
    ],
)
async def test_what_is_not_there_is_told(tmp_path: Path, wanted: str, message: str) -> None:
    async with serving(tmp_path, "one") as one:
        await judged(one, tmp_path / "made")
        with pytest.raises(NotFoundError, match=message):
            await verdict_document(one.replica.state, one.artifact_cache, wanted)


async def test_a_beginning_of_several_ids_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await judged(one, tmp_path / "made")
        with pytest.raises(UsageError, match="2 models' ids begin with 11bb11"):
            await verdict_document(one.replica.state, one.artifact_cache, "11bb11")


async def test_before_any_verdict_there_is_none(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(started(),))
        with pytest.raises(NotFoundError, match="no gate has decided yet"):
            await verdict_document(one.replica.state, one.artifact_cache, "")
