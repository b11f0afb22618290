"""Where samples come from, asked of a node whose artifacts real workers' code has written."""

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from jupiterd.cluster.facts.facts import Fact, WorkCompleted
from jupiterd.cycle.data.lineage import Sample
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.app.tasks import retention_of
from jupiterd.daemon.artifacts.retention import GRACE_S
from jupiterd.daemon.queries.cluster.cluster_trace import trace_of
from jupiterd.daemon.queries.cluster.provenance_document import _collecting, provenance_document
from jupiterd.daemon.queries.cycle.export_document import export_document
from jupiterd.daemon.queries.cycle.run_documents import data_document
from jupiterd.errors import NotFoundError, UsageError
from jupiterd.ids import ArtifactId
from jupiterd.workers.data.pack.pack_shards import PackParams, pack
from tests.support.cluster.building import CYCLE, NODES, checkpoint, data_asked, started
from tests.support.daemon.two_nodes import found, serving
from tests.support.workers.data_material import function, real, write
from tests.unit.daemon.artifacts.test_retention import left_unused

REAL = [real(function(number), cluster=f"c{number}") for number in range(40)]
SCORED = [replace(sample, filters="filter@1", filter_scores={"quality": 0.5}) for sample in REAL]
MODEL = "6" * 64


def made_from(parent: Sample, text: str, depth: int = 1) -> Sample:
    return replace(
        real(text), kind="synthetic", depth=depth, parents=(parent.id,), generator=MODEL,
        template="complete_function",
    )  # fmt: skip


CHILD = made_from(REAL[3], function(100))
GRANDCHILD = made_from(CHILD, function(101), depth=2)


def stored(node: Node, folder: Path, samples: Sequence[Sample]) -> ArtifactId:
    return node.artifact_cache.store.ingest(write(folder, samples))


def done(phase: str, round_number: int = 1, **outputs: str) -> WorkCompleted:
    named = {name: ArtifactId(artifact) for name, artifact in outputs.items()}
    item = f"r{round_number}/{phase}/0"
    return WorkCompleted(CYCLE, round_number, phase, item, NODES[1], named)


async def prepared(node: Node, folder: Path) -> dict[str, ArtifactId]:
    """Let a cycle be known that has collected, generated, filtered and packed."""
    everything = [*SCORED, CHILD, GRANDCHILD]
    pack([write(folder / "k", everything)], None, folder, PackParams(400, 16, 0.5, 1))
    made = {
        "train": stored(node, folder / "train", REAL),
        "samples": stored(node, folder / "samples", [CHILD, GRANDCHILD]),
        "kept": stored(node, folder / "kept", everything),
        "shards": node.artifact_cache.store.ingest(folder / "shards"),
    }
    facts: tuple[Fact, ...] = (
        started(),
        done("collect", train=made["train"]),
        checkpoint(MODEL, is_final=True),
        done("generate", 2, samples=made["samples"]),
        done("filter", 2, kept=made["kept"], dropped="0" * 64),
        done("pack", 2, shards=made["shards"], tokenizer="7" * 64),
    )
    await found(node, facts=facts)
    return made


async def why_of(node: Node, wanted: str) -> dict[str, Any]:
    """Return where a sample or a token comes from, as a node tells it."""
    sources = node.observers.sources
    return (await provenance_document(node.replica.state, trace_of(sources), wanted))["why"]


async def test_a_real_sample_leads_to_its_source_its_scores_and_who_did_the_work(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one:
        made = await prepared(one, tmp_path / "made")
        why = await why_of(one, REAL[5].id)
    assert why["sample"]["id"] == REAL[5].id
    assert why["sample"]["license"] == "PSF-2.0"
    assert why["sample"]["filter_scores"] == {"quality": 0.5}
    assert why["sample"]["text_bytes"] == len(REAL[5].text)
    assert "text" not in why["sample"]
    assert (why["parents"], why["generator"]) == ([], None)
    assert [(each["phase"], each["artifact"]) for each in why["seen"]] == [
        ("filter", made["kept"]), ("collect", made["train"]),
    ]  # fmt: skip
    assert {each["node"]["id"] for each in why["seen"]} == {NODES[1]}
    (packed,) = why["packed"]
    assert (packed["shards"], packed["round"]) == (made["shards"], 2)


async def test_a_synthetic_sample_leads_through_its_parents_to_the_real_one(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await prepared(one, tmp_path / "made")
        why = await why_of(one, GRANDCHILD.id[:12])
    (child,) = why["parents"]
    (parent,) = child["parents"]
    assert [r["sample"]["id"] for r in (why, child, parent)] == [
        GRANDCHILD.id, CHILD.id, REAL[3].id,
    ]  # fmt: skip
    assert [r["sample"]["kind"] for r in (child, parent)] == ["synthetic", "real"]
    assert why["generator"]["artifact"] == MODEL
    assert (why["generator"]["name"], why["generator"]["round"]) == ("python", 1)


@pytest.mark.parametrize("shards", ["python", "python/2", CYCLE[:6], "artifact"])
async def test_every_token_leads_to_the_sample_that_it_was_packed_from(
    tmp_path: Path, shards: str
) -> None:
    async with serving(tmp_path, "one") as one:
        made = await prepared(one, tmp_path / "made")
        named = made["shards"][:10] if shards == "artifact" else shards
        packed = (await why_of(one, GRANDCHILD.id))["packed"][0]
        for offset in (packed["first"], packed["end"] - 1):
            why = await why_of(one, f"{named}:{offset}")
            assert why["sample"]["id"] == GRANDCHILD.id
            assert (why["position"]["offset"], why["position"]["round"]) == (offset, 2)
        after = (await why_of(one, f"{named}:{packed['end']}"))["sample"]["id"]
        assert after != GRANDCHILD.id


async def test_what_is_not_there_is_told_with_a_way_on(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await prepared(one, tmp_path / "made")
        with pytest.raises(NotFoundError, match="no sample in reach") as caught:
            await why_of(one, "abcd" * 16)
        assert "bbbbbbbb" in caught.value.hint  # who made what isn't here: it has no name here
        with pytest.raises(NotFoundError, match="and none is number 999,999"):
            await why_of(one, "python:999999")
        with pytest.raises(NotFoundError, match="no shards are called poems"):
            await why_of(one, "poems:1")
        with pytest.raises(NotFoundError, match="no shards are called python/1"):
            await why_of(one, "python/1:1")


@pytest.mark.parametrize("wrong", ["", "abc", "zzzz", "../../etc", "python:-1", "a" * 65, "x:y"])
async def test_what_is_no_question_is_told_so(tmp_path: Path, wrong: str) -> None:
    async with serving(tmp_path, "one") as one:
        await prepared(one, tmp_path / "made")
        with pytest.raises(UsageError):
            await why_of(one, wrong)


async def test_an_ambiguous_beginning_is_told(tmp_path: Path) -> None:
    many = [real(f"text {number}") for number in range(2000)]
    ids = sorted(sample.id for sample in many)
    same = next(a[:4] for a, b in pairwise(ids) if a[:4] == b[:4])
    async with serving(tmp_path, "one") as one:
        kept = stored(one, tmp_path / "kept", random.Random(1).sample(many, 2000))
        await found(one, facts=(started(), done("filter", kept=kept)))
        with pytest.raises(UsageError, match=f"{same} could be any of"):
            await why_of(one, same)


async def test_a_token_of_a_prepared_data_set_leads_to_what_it_was_made_of(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        pack([write(tmp_path / "k", REAL)], None, tmp_path / "s", PackParams(400, 16, 0.5, 1))
        shards = one.artifact_cache.store.ingest(tmp_path / "s" / "shards")
        await found(one, facts=(data_asked(), done("pack", shards=shards)))
        why = await why_of(one, "letters:0")
    assert why["data_set"]["path"] == "/letters"
    assert why["sample"]["id"] in {sample.id for sample in REAL}


async def test_a_round_is_exported_from_where_its_samples_lie(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        made = await prepared(one, tmp_path / "made")
        exported = (await export_document(one.replica, one.artifact_cache, "python"))["export"]
        assert (exported["name"], exported["round"], exported["purged"]) == ("python", 2, [])
        assert exported["samples"] == [str(one.artifact_cache.store.path(made["kept"]))]
        with pytest.raises(NotFoundError, match="no shards are called python/1"):
            await export_document(one.replica, one.artifact_cache, "python/1")
        one.artifact_cache.store.remove(made["kept"])
        with pytest.raises(NotFoundError, match="aren't all in reach"):
            await export_document(one.replica, one.artifact_cache, "python")


async def test_a_data_set_s_text_isn_t_exported(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(data_asked(), done("pack", shards="5" * 64)))
        with pytest.raises(UsageError, match="letters is a data set: tokens of /letters"):
            await export_document(one.replica, one.artifact_cache, "letters")


async def test_the_data_of_rounds_is_listed_with_what_it_is_made_of(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        made = await prepared(one, tmp_path / "made")
        (row,) = (await data_document(one.observers.sources, ""))["rounds"]
        assert (row["name"], row["round"], row["shards"]) == ("python", 2, made["shards"])
        assert row["contents"]["kind"] == {"real": 40, "synthetic": 2}
        one.artifact_cache.store.remove(made["shards"])
        (row,) = (await data_document(one.observers.sources, ""))["rounds"]
        assert (row["held_here"], row["contents"]) == (False, None)


PURE = "version: 1\ndomain: python\ntitle: t\nlanguage: code:python\nholdout: {salt: s}\n"
SOURCES = (
    "data_sources:\n  - {kind: python_stdlib, name: other}\n  - {kind: python_stdlib, name: it}\n"
)


def round_of(node: Node, folder: Path, number: int, samples: Sequence[Sample]) -> list[Fact]:
    """Do the work of a round that has two sources, the second of which has all the text."""
    own = [replace(each, source="it") for each in samples]
    texts = [*own, replace(made_from(own[0], function(500 + number)), source="it")]
    pack([write(folder / "k", texts)], None, folder, PackParams(400, 16, 0.5, 1))
    nothing = stored(node, folder / "nothing", [])
    clean = stored(node, folder / "clean", [replace(each, filters="clean@1") for each in texts])
    kept = stored(node, folder / "kept", [replace(each, filters="unite@1") for each in texts])
    # What the generator was asked with is nothing that the filters have kept.
    asked = stored(node, folder / "parents", [real(function(900 + number))])
    facts: list[Fact] = [
        done("collect", number, train=nothing, state=nothing),
        replace(
            done("collect", number, train=stored(node, folder / "train", own), state=nothing),
            item=f"r{number}/collect/1",
            node=NODES[2],
        ),
        done("generate", number, samples=stored(node, folder / "s", texts[-1:]), parents=asked),
        replace(done("filter", number, kept=kept), item=f"r{number}/filter/0"),
        replace(done("filter", number, clean=clean), item=f"r{number}/filter/1"),
        done("pack", number, shards=node.artifact_cache.store.ingest(folder / "shards")),
    ]
    return facts


async def test_all_that_an_old_round_was_trained_on_is_known_once_its_batches_have_gone(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one:
        rounds = [
            round_of(one, tmp_path / f"r{n}", n, REAL[n * 10 : n * 10 + 10]) for n in (1, 2, 3)
        ]
        began = replace(started(), domain_yaml=PURE + SOURCES)
        await found(one, facts=(began, *(fact for each in rounds for fact in each)))
        store = one.artifact_cache.store
        before = await why_of(one, REAL[12].id)
        held = set(store.ids())
        left_unused(one)
        retention = retention_of(one)
        await retention.look(0.0)
        assert set(store.ids()) == held
        await retention.look(GRACE_S)
        outputs = [fact.outputs for fact in rounds[0] if isinstance(fact, WorkCompleted)]
        gone = {outputs[1]["train"], outputs[4]["clean"]}  # the empty batch is in newer rounds, too
        assert held - set(store.ids()) == gone
        after = await why_of(one, REAL[12].id)
        who = [(each["phase"], each["node"]["id"]) for each in after["seen"]]
        assert who == [("filter", NODES[1]), ("collect", NODES[2])]
        assert {**after, "seen": []} == {**before, "seen": [], "elapsed_ms": after["elapsed_ms"]}
        for offset in range(0, after["packed"][0]["end"], 7):
            assert (await why_of(one, f"python/1:{offset}"))["sample"]["id"]
        (made,) = (await why_of(one, real(function(501)).id))["parents"]
        assert made["sample"]["id"] == REAL[10].id
        assert (await why_of(one, real(function(901)).id))["seen"]
        assert (await export_document(one.replica, one.artifact_cache, "python/1"))["export"][
            "samples"
        ]
        with pytest.raises(NotFoundError) as caught:
            await why_of(one, "abcd" * 16)
        assert "start it" not in caught.value.hint  # what went is nowhere else either
        assert trace_of(one.observers.sources)._lasting <= set(
            store.ids()
        )  # so nobody else need be asked


def test_of_a_source_in_parts_the_part_is_known_that_read_a_page() -> None:
    sites = "  - {kind: web, name: sites, urls: [https://a.example/, https://b.example/]}\n"
    began = replace(started(), domain_yaml=PURE + SOURCES + sites)
    page = replace(REAL[0], source="sites", source_uri="https://b.example/page")
    assert _collecting(began, page) == {"collect/2", "collect/2/1"}
