"""Promoting a student as a generator by hand, and rolling one back."""

from dataclasses import replace
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import CycleFailed, CycleStarted, Fact
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.catalog.generator_state import generation_document
from jupiterd.daemon.commands.promotion_commands import promote, roll_back
from jupiterd.errors import (
    ConflictError,
    JupiterError,
    NotFoundError,
    StudentOnTrialError,
    UsageError,
)
from jupiterd.protocol.commands.cycle_commands import PromoteModel, RollBackStudent
from tests.support.cluster.building import CYCLE, checkpoint, commanded, paused, round_over, started
from tests.support.daemon.two_nodes import found, serving

ONE_ROUND = (checkpoint("k1", is_final=True), round_over("k1", verdict="PROMOTE"))
HELD = (checkpoint("k1", is_final=True), round_over("k1"))


DOMAIN = """
version: 1
title: A tiny domain
language: code:python
data_sources: [{kind: folder, path: /data, license: MIT}]
generation: {templates: [{kind: complete_function, samples: 10}]}
holdout: {salt: s}
"""


def begun(rounds: int) -> CycleStarted:
    return replace(started(rounds), domain_yaml=DOMAIN)


def writers(node: Node) -> list[tuple[str, float]]:
    shown = generation_document(node.replica.state.cycles[CYCLE])
    return [(row["generator"], row["share"]) for row in shown["writers"]]


async def test_a_student_is_rolled_back_from_the_next_round_on(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(begun(3), *ONE_ROUND))
        ((student, share),) = writers(one)
        assert share == 0.1
        done = await roll_back(one._begin_term(1).term, RollBackStudent())
        assert (done["student"], done["from_round"]) == (student, 3)


async def test_a_paused_cycle_that_has_not_begun_to_generate_changes_at_once(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(begun(3), *ONE_ROUND, paused(1)))
        assert (await roll_back(one._begin_term(1).term, RollBackStudent()))["from_round"] == 2
        assert writers(one) == []
        shown = generation_document(one.replica.state.cycles[CYCLE])
        assert shown["promotions"][-1].endswith("was rolled back by a person")


async def test_a_model_that_the_gate_held_back_can_be_promoted_and_rolled_back(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(begun(3), *HELD, paused(1)))
        term = one._begin_term(1).term
        done = await promote(term, PromoteModel.read({"model": "python/1"}))
        assert writers(one) == [(done["student"], 0.1)]
        with pytest.raises(ConflictError, match="generates already"):
            await promote(term, PromoteModel.read({"model": "python/1"}))
        await roll_back(term, RollBackStudent())
        assert writers(one) == []
        await promote(term, PromoteModel.read({"model": "python/1"}))
        assert writers(one) == [(done["student"], 0.1)]


async def test_the_promoted_model_is_promoted_by_that_name_as_by_its_own(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(begun(3), *ONE_ROUND))
        with pytest.raises(ConflictError, match="python/1 generates already"):
            await promote(one._begin_term(1).term, PromoteModel.read({"model": "promoted"}))


@pytest.mark.parametrize(
    ("facts", "model", "kind", "why"),
    [
        ((begun(3),), "python/1", NotFoundError, "there is no model"),
        (
            (begun(3), checkpoint("k1", is_final=True)),
            "python/1",
            UsageError,
            "no model of a round that is over",
        ),
    ],
)
async def test_what_cannot_be_promoted_is_told_in_a_line(
    tmp_path: Path, facts: tuple[Fact, ...], model: str, kind: type[JupiterError], why: str
) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=facts)
        with pytest.raises(kind, match=why):
            await promote(one._begin_term(1).term, PromoteModel.read({"model": model}))


async def test_without_a_student_in_force_nothing_is_rolled_back(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(begun(3), *HELD))
        with pytest.raises(ConflictError, match="no student"):
            await roll_back(one._begin_term(1).term, RollBackStudent())


@pytest.mark.parametrize(
    "facts",
    [
        (begun(1), *HELD),
        (begun(3), *HELD, commanded("stopped", 1)),
        (begun(3), *HELD, CycleFailed(CYCLE, "failed", "out of ideas", "")),
    ],
    ids=["over", "stopped", "failed"],
)
async def test_of_a_cycle_that_has_ended_a_student_is_promoted_and_rolled_back_for_later(
    tmp_path: Path, facts: tuple[Fact, ...]
) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=facts)
        term = one._begin_term(1).term
        done = await promote(term, PromoteModel.read({"model": "python/1"}))
        assert (done["from_round"], done["has_ended"]) == (2, True)
        assert writers(one) == [(done["student"], 0.1)]
        done = await roll_back(term, RollBackStudent.read({"cycle": "python"}))
        assert (done["from_round"], done["has_ended"]) == (2, True)
        assert writers(one) == []


async def test_a_promotion_by_hand_is_taken_back_before_its_round(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(begun(3), *HELD))
        term = one._begin_term(1).term
        promoted = await promote(term, PromoteModel.read({"model": "python/1"}))
        done = await roll_back(term, RollBackStudent())
        assert (done["student"], done["from_round"]) == (promoted["student"], 3)
        with pytest.raises(ConflictError, match="no student"):
            await roll_back(term, RollBackStudent())


TWO_ROUNDS = (
    *HELD,
    checkpoint("m2", "k1", round_number=2, tokens=200, is_final=True),
    round_over("m2", 2, verdict="PROMOTE"),
)


async def test_who_would_end_another_s_trial_has_to_say_so(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(begun(4), *TWO_ROUNDS, paused(1)))
        term = one._begin_term(1).term
        assert writers(one) == [("m2", 0.1)]
        with pytest.raises(StudentOnTrialError, match="student m2 writes a tenth of round 3 as"):
            await promote(term, PromoteModel.read({"model": "python/1"}))
        assert writers(one) == [("m2", 0.1)]
        await promote(term, PromoteModel.read({"model": "python/1", "replaces": True}))
        assert writers(one) == [("k1", 0.1)]


async def test_a_trial_in_the_round_that_runs_is_not_ended_but_a_promotion_by_hand_is(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(begun(5), *TWO_ROUNDS))
        term = one._begin_term(1).term
        assert (await promote(term, PromoteModel.read({"model": "python/1"})))["from_round"] == 4
        with pytest.raises(ConflictError, match="generates already"):
            await promote(term, PromoteModel.read({"model": "python/2"}))
        await promote(
            term, PromoteModel.read({"model": "python/1"})
        )  # the same again takes nobody's place


SILENT = replace(
    begun(4), domain_yaml=DOMAIN.replace("[{kind: complete_function, samples: 10}]", "[]")
)
"""A cycle whose domain has no templates."""

BOTH_PROMOTED = (
    *ONE_ROUND,
    checkpoint("m2", "k1", round_number=2, tokens=200, is_final=True),
    round_over("m2", 2, verdict="PROMOTE"),
)


def promoted(node: Node) -> str | None:
    return generation_document(node.replica.state.cycles[CYCLE])["promoted"]


async def test_without_templates_a_rollback_brings_back_the_promoted_model_before_at_once(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(SILENT, *BOTH_PROMOTED))
        assert (promoted(one), writers(one)) == ("m2", [])
        term = one._begin_term(1).term
        done = await roll_back(term, RollBackStudent())
        assert (done["student"], done["generates"]) == ("m2", False)
        assert promoted(one) == "k1"
        await roll_back(term, RollBackStudent())
        assert promoted(one) is None
        with pytest.raises(ConflictError, match=r"no student of cycle \w+ is promoted"):
            await roll_back(term, RollBackStudent())


async def test_without_templates_a_promotion_by_hand_holds_at_once_and_ends_nobody_s_trial(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(SILENT, *TWO_ROUNDS))
        term = one._begin_term(1).term
        for number, model in ((1, "k1"), (2, "m2"), (1, "k1")):
            await promote(term, PromoteModel.read({"model": f"python/{number}"}))
            assert (promoted(one), writers(one)) == (model, [])
            with pytest.raises(ConflictError, match="is promoted already"):
                await promote(term, PromoteModel.read({"model": f"python/{number}"}))
        await roll_back(term, RollBackStudent())
        assert promoted(one) == "m2", "whoever was promoted by hand before"


async def test_whom_nobody_trains_on_is_promoted_though_it_writes_and_is_rolled_back(
    tmp_path: Path,
) -> None:
    unused = replace(begun(4), domain_yaml=f"{DOMAIN}mix_ratio: {{synthetic_share: 0}}\n")
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(unused, *ONE_ROUND, paused(1)))
        assert (promoted(one), writers(one)) == ("k1", [("k1", 0.1)])
        done = await roll_back(one._begin_term(1).term, RollBackStudent())
        assert (done["student"], done["generates"]) == ("k1", True)
        assert (promoted(one), writers(one)) == (None, [])
