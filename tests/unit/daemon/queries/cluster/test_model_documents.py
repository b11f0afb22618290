"""What is told of a model: of facts, and of small files of artifacts."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from jupiterd.cluster.facts.attempt_facts import AttemptClosed, AttemptOpened
from jupiterd.cluster.facts.facts import (
    CheckpointCommitted,
    RoundCommitted,
    VerdictReached,
    WorkCompleted,
)
from jupiterd.cluster.ledger.cycle_state import PREPARING
from jupiterd.cycle.base.contents_file import CONTENTS_FILE
from jupiterd.cycle.gate.record import VERDICT_FILE
from jupiterd.cycle.generation.completions import Completion
from jupiterd.cycle.phases.view import item_id
from jupiterd.daemon.app.node import Node
from jupiterd.errors import NotFoundError
from jupiterd.ids import ArtifactId
from jupiterd.locations import config_folder
from jupiterd.workers.evaluate.score_file import write_completions
from tests.support.cluster.building import CYCLE, checkpoint, data_asked, started, training
from tests.support.daemon.shown import shown
from tests.support.daemon.two_nodes import found, serving

CONTENTS = {"source": {"stdlib": 7}, "license": {"PSF-2.0": 7}}
BEGUN = replace(started(), domain_yaml=(config_folder() / "domains" / "python.yaml").read_text())
WRITTEN = Completion("def f(", "x): pass", is_looping=False)


async def judged(node: Node, folder: Path) -> ArtifactId:
    """Let one round be known, with what it made; return its model."""
    for name, files in {
        "model": {"config.json": {"model_type": "qwen3"}},
        "shards": {CONTENTS_FILE: CONTENTS},
        "verdict": {VERDICT_FILE: {"schema": "jupiter/verdict/v2"}},
    }.items():
        (folder / name).mkdir(parents=True)
        for file, content in files.items():
            (folder / name / file).write_text(json.dumps(content))
    write_completions(folder / "scores", [WRITTEN])
    model, shards, verdict, scores = (
        node.artifact_cache.store.ingest(folder / name)
        for name in ("model", "shards", "verdict", "scores")
    )
    own = node.identity.node_id
    evaluated = item_id(1, "evaluate", 0, model)
    await found(
        node,
        facts=(
            BEGUN,
            WorkCompleted(CYCLE, 1, "pack", item_id(1, "pack", 0), own, {"shards": shards},
                          {"tokens": 900.0, "documents": 7.0}, elapsed_s=2.0),
            AttemptOpened(CYCLE, 1, 1, (own,), "torch", "", 0),
            CheckpointCommitted(CYCLE, 1, "", model, 1, 50, 800, 4, 2.5, True),
            AttemptClosed(CYCLE, 1, "finished", 30.0),
            WorkCompleted(CYCLE, 1, "evaluate", evaluated, own, {"scores": scores}),
            VerdictReached(CYCLE, 1, "PROMOTE", "better", 2.1, verdict, model, ""),
            RoundCommitted(CYCLE, 1, model, "PROMOTE", model),
        ),
    )  # fmt: skip
    return model


async def test_a_model_is_told_with_its_data_its_training_and_what_it_wrote(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        model = await judged(one, tmp_path / "made")
        (listed,) = (await shown(one, "models"))["models"]
        told = (await shown(one, "model/python/1"))["model"]
    assert (listed["id"], listed["writes"], listed["held_here"]) == (model, True, True)
    assert told.items() >= listed.items()
    assert told["data"]["contents"] == CONTENTS
    assert told["began_with"] is None
    assert told["completions"] == [{"prompt": "def f(", "text": "x): pass", "is_looping": False}]
    assert told["verdict_document"] == {"schema": "jupiter/verdict/v2"}
    (row,) = told["log"]
    assert row["points"] == [{"step": 50, "tokens": 800, "loss": 2.5}]
    assert row["phases"] == {"pack": 2.0, "train": 30.0, "evaluate": 0.0}
    assert (row["epochs"][0]["engine"], row["epochs"][0]["elapsed_s"]) == ("torch", 30.0)
    assert told["machines"] == {row["epochs"][0]["nodes"][0]: "one"}


async def test_what_is_not_in_reach_is_left_out_and_only_the_weights_are_asked_for(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one:
        model = await judged(one, tmp_path / "made")
        store = one.artifact_cache.store
        cycle = one.replica.state.cycles[CYCLE]
        for done in cycle.completed.values():
            for artifact in done.outputs.values():
                store.remove(artifact)
        told = (await shown(one, f"model_export/{model[:8]}"))["model"]
        assert told["files_at"] == str(store.path(model))
        assert (told["data"]["contents"], told["completions"]) == (None, [])
        store.remove(model)
        with pytest.raises(NotFoundError, match="nobody in reach has the model python/1"):
            await shown(one, "model_export/python/1")


async def test_the_files_of_a_model_are_found_by_every_name_that_one_may_chat_with(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one:
        model = await judged(one, tmp_path / "made")
        store = one.artifact_cache.store
        files = {"id": model, "name": "python/1", "files_at": str(store.path(model))}
        for name in ("promoted", "python/1", model[:8]):
            assert (await shown(one, f"model_files/{name}"))["model"] == files
        with pytest.raises(NotFoundError, match="python/1, which is promoted, has no base"):
            await shown(one, "model_files/base")
        store.remove(model)
        with pytest.raises(NotFoundError, match="nobody in reach has the model promoted"):
            await shown(one, "model_files/promoted")


@pytest.mark.parametrize("noun", ["model", "model_export", "held_out", "questions"])
async def test_every_document_of_a_model_knows_the_same_names(tmp_path: Path, noun: str) -> None:
    async with serving(tmp_path, "one") as one:
        model = await judged(one, tmp_path / "made")
        told = [await shown(one, f"{noun}/{name}") for name in ("promoted", "python/1", model[:8])]
        assert told[0] == told[1] == told[2]
        with pytest.raises(NotFoundError, match="python/1, which is promoted, has no base"):
            await shown(one, f"{noun}/python/1/base")
        with pytest.raises(NotFoundError, match="there is no model nobody"):
            await shown(one, f"{noun}/nobody")


async def test_what_a_training_began_with_is_shown_and_exported_as_a_model_of_others(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one:
        (tmp_path / "brought").mkdir()
        (tmp_path / "brought" / "config.json").write_text("{}")
        base = one.artifact_cache.store.ingest(tmp_path / "brought")
        tuned = {"start_from": base, "recipe": "tuning", "lora": "rank=16,alpha=32"}
        run = replace(training(), model="SmolLM2", settings=tuned)
        await found(one, facts=(run, checkpoint("k" * 64, is_final=True)))
        for name in ("base", "letters/base"):
            told = (await shown(one, f"model/{name}"))["model"]
            assert (told["id"], told["name"], told["kind"]) == (base, "SmolLM2", "base")
            assert (told["data"], told["log"], told["verdict"]) == (None, [], None)
        exported = (await shown(one, "model_export/base"))["model"]
        (listed,) = (await shown(one, "models"))["models"]
    assert listed["adapter"] == {"base": "SmolLM2", "options": "rank=16,alpha=32"}
    assert base in exported["files_at"]


async def test_what_a_training_run_held_out_is_named_for_its_scores(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        (tmp_path / "texts").mkdir()
        (tmp_path / "texts" / "samples").write_text("held out")
        texts = one.artifact_cache.store.ingest(tmp_path / "texts")
        model = ArtifactId("k" * 64)
        await found(one, facts=(training(), checkpoint(model, is_final=True)))
        with pytest.raises(NotFoundError, match="nothing was held out of the text of letters"):
            await shown(one, "run_held_out/letters")
        item, own = item_id(1, "pack", 0), one.identity.node_id
        fact = WorkCompleted(CYCLE, 1, PREPARING, item, own, {"holdout": texts})
        await one.replica.append(2, [data_asked(), fact])
        told = (await shown(one, "run_held_out/letters"))["held_out"]
        assert told["texts"] == [str(one.artifact_cache.store.path(texts))]
        one.artifact_cache.store.remove(texts)
        with pytest.raises(NotFoundError, match="isn't in reach"):
            await shown(one, "run_held_out/letters")


async def test_a_report_names_rounds_folders_and_who_trained(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        model = await judged(one, tmp_path / "made")
        (tmp_path / "kept").mkdir()
        (tmp_path / "kept" / "samples").write_text("kept")
        kept = one.artifact_cache.store.ingest(tmp_path / "kept")
        own = one.identity.node_id
        united = {"kept": kept, "dropped": ArtifactId("8" * 64)}
        fact = WorkCompleted(CYCLE, 1, "filter", item_id(1, "filter", 0), own, united)
        await one.replica.append(2, [fact])
        told = (await shown(one, f"report/{CYCLE[:8]}"))["report"]
        assert told["samples"] == {
            "round": 1, "kept": [str(one.artifact_cache.store.path(kept))],
            "dropped": [], "samples": [],
            "parents": [],
        }  # fmt: skip
    (row,) = told["rounds"]
    assert (row["id"], row["completions"][0]["text"]) == (model, "x): pass")
    assert (row["answers"]["trouble"], row["answers"]["rows"]) == (None, [])
    assert told["cycle"]["id"] == CYCLE
    assert [each["round"] for each in told["log"]] == [1]


async def test_without_a_cycle_there_is_no_report(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one)
        for noun, told in (("report", "no cycle has been started"), ("report/x", "no cycle x")):
            with pytest.raises(NotFoundError, match=told):
                await shown(one, noun)


async def test_what_a_candidate_was_judged_on_is_named_for_others_to_check(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await judged(one, tmp_path / "made")
        (tmp_path / "texts").mkdir()
        (tmp_path / "texts" / "samples").write_text("held out")
        texts = one.artifact_cache.store.ingest(tmp_path / "texts")
        own = one.identity.node_id
        item = item_id(1, "collect", 0)
        fact = WorkCompleted(CYCLE, 1, "collect", item, own, {"holdout": texts})
        await one.replica.append(2, [fact])
        told = (await shown(one, "held_out/python/1"))["held_out"]
        assert told["texts"] == [str(one.artifact_cache.store.path(texts))]
        assert (Path(told["verdict"]) / VERDICT_FILE).is_file()
        one.artifact_cache.store.remove(texts)
        with pytest.raises(NotFoundError, match="isn't all in reach"):
            await shown(one, "held_out/python/1")
