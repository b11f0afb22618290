"""Where samples come from, asked of a node that lacks what is needed, while others have it."""

import asyncio
import logging
import shutil
import threading
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupiterd.cluster.ledger.state import State
from jupiterd.cycle.data.document_index import DOCUMENTS_FILE
from jupiterd.cycle.data.sample_index import INDEX_FILE, SAMPLES_FILE
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.catalog.sample_locations import Output, outputs_of
from jupiterd.daemon.queries.cluster import cluster_trace
from jupiterd.daemon.queries.cluster.provenance_document import MAX_PARENTS
from jupiterd.errors import NotFoundError, UsageError
from jupiterd.ids import ArtifactId
from jupiterd.rpc import peer_pb2
from jupiterd.workers.data.pack.pack_shards import PackParams, pack
from tests.support.cluster.building import checkpoint, pinned, started
from tests.support.daemon.two_nodes import found, link, serving, take_for_alive, whole_ledger
from tests.support.workers.data_material import real, write
from tests.unit.daemon.queries.cluster.test_provenance_document import (
    CHILD,
    GRANDCHILD,
    MODEL,
    REAL,
    SCORED,
    done,
    made_from,
    why_of,
)

KEPT = [*SCORED, CHILD, GRANDCHILD]
NAMES = ("train", "samples", "kept", "shards")


def written(folder: Path) -> dict[str, Path]:
    """Write what a cycle makes: name of an output -> its folder."""
    pack([write(folder / "k", KEPT)], None, folder, PackParams(400, 16, 0.5, 1))
    return {
        "train": write(folder / "train", REAL),
        "samples": write(folder / "samples", [CHILD, GRANDCHILD]),
        "kept": write(folder / "kept", KEPT),
        "shards": folder / "shards",
    }


@asynccontextmanager
async def two_holders(
    folder: Path, on_other: str
) -> AsyncGenerator[tuple[Node, Node, dict[str, ArtifactId]]]:
    """Run two members; the other holds the outputs of these names, and the one all the rest."""
    async with serving(folder, "one") as one, serving(folder, "other") as other:
        held = {name: other if name in on_other.split() else one for name in NAMES}
        made = {
            name: held[name].artifact_cache.store.ingest(path)
            for name, path in written(folder / "made").items()
        }
        facts = (
            started(),
            done("collect", train=made["train"]),
            checkpoint(MODEL, is_final=True),
            done("generate", 2, samples=made["samples"]),
            done("filter", 2, kept=made["kept"], dropped="0" * 64),
            done("pack", 2, shards=made["shards"], tokenizer="7" * 64),
        )
        await found(one, other, facts=facts)
        await other.replica.move_to(whole_ledger(one.replica))
        for node, peer in ((one, other), (other, one)):
            await link(node, peer)
            take_for_alive(node, peer)
        yield one, other, made


async def why(node: Node, wanted: str) -> Mapping[str, Any]:
    """Return the answer, without how long it took."""
    answer = await why_of(node, wanted)
    return {key: value for key, value in answer.items() if key != "elapsed_ms"}


def sources(record: Mapping[str, Any]) -> Iterator[str]:
    yield record["sample"]["id"]
    for parent in record["parents"]:
        yield from sources(parent)


def others_tell(monkeypatch: pytest.MonkeyPatch, *samples: peer_pb2.TracedSample) -> None:
    """Let every member that is asked tell this, whatever it holds."""

    async def tell(*_: object) -> peer_pb2.TraceReply:
        return peer_pb2.TraceReply(samples=samples)

    monkeypatch.setattr("jupiterd.daemon.queries.cluster.local_trace.trace_for_member", tell)


@pytest.mark.parametrize("on_other", ["", "train", "kept shards", "samples kept", " ".join(NAMES)])
@pytest.mark.parametrize("wanted", [GRANDCHILD.id, GRANDCHILD.id[:9], REAL[5].id, "python:77"])
async def test_every_member_answers_the_same_whoever_holds_what(
    tmp_path: Path, on_other: str, wanted: str
) -> None:
    async with two_holders(tmp_path, on_other) as (one, other, _):
        answer = await why(one, wanted)
        assert answer == await why(other, wanted)
    assert answer["sample"]["filters"] == ("" if answer["parents"] else "filter@1")
    assert {each["output"] for each in answer["seen"]} >= {"kept"}
    assert [each["round"] for each in answer["packed"]] == [2]


async def test_a_chain_is_followed_over_the_nodes_that_hold_its_parts(tmp_path: Path) -> None:
    async with two_holders(tmp_path, "kept train shards") as (one, other, made):
        other.artifact_cache.store.remove(made["kept"])
        for node in (one, other):
            assert [*sources(await why(node, GRANDCHILD.id))] == [
                GRANDCHILD.id, CHILD.id, REAL[3].id,
            ]  # fmt: skip


async def test_all_parents_are_traced_however_many_they_are_together(tmp_path: Path) -> None:
    originals = [real(f"original {number}") for number in range(MAX_PARENTS * MAX_PARENTS)]
    ids = [sample.id for sample in originals]
    children = [
        replace(
            made_from(originals[0], f"child {first}"),
            parents=tuple(ids[first : first + MAX_PARENTS]),
        )
        for first in range(0, len(ids), MAX_PARENTS)
    ]
    last = replace(
        made_from(children[0], "last", depth=2), parents=tuple(child.id for child in children)
    )
    async with serving(tmp_path, "one") as one:
        kept = write(tmp_path / "kept", [*originals, *children, last])
        artifact = one.artifact_cache.store.ingest(kept)
        await found(one, facts=(started(), done("filter", kept=artifact)))
        answer = await why(one, last.id)
    parents = [parent for child in answer["parents"] for parent in child["parents"]]
    assert [parent["sample"]["id"] for parent in parents] == ids
    assert not any(parent.get("missing") for parent in parents)


def damage(node: Node, artifact: ArtifactId, name: str) -> None:
    file = node.artifact_cache.store.path(artifact) / name
    file.chmod(0o644)
    file.write_bytes(b"no more what it was")


@pytest.mark.parametrize(
    ("output", "name"), [("kept", INDEX_FILE), ("kept", SAMPLES_FILE), ("shards", DOCUMENTS_FILE)]
)
@pytest.mark.parametrize("wanted", [GRANDCHILD.id[:9], "python:77"])
async def test_what_is_damaged_here_is_told_by_others_that_have_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, output: str, name: str, wanted: str
) -> None:
    async with two_holders(tmp_path, "train samples") as (one, other, made):
        for artifact in made.values():
            for node, holder in ((one, other), (other, one)):
                if not node.artifact_cache.store.holds(artifact):
                    files = tmp_path / f"copy of {artifact}"
                    shutil.copytree(holder.artifact_cache.store.path(artifact), files)
                    node.artifact_cache.store.ingest(files)
        told = await why(one, wanted)
        damage(one, made[output], name)
        with caplog.at_level(logging.WARNING):
            assert await why(one, wanted) == told
    assert "samples_damaged" in caplog.messages


async def test_what_is_damaged_on_the_only_node_is_told_beside_what_is_not(tmp_path: Path) -> None:
    async with two_holders(tmp_path, "") as (one, _, made):
        damage(one, made["kept"], INDEX_FILE)
        answer = await why(one, REAL[5].id)
        assert [each["output"] for each in answer["seen"]] == ["train"]


async def test_what_is_damaged_and_nowhere_else_is_told_as_such(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        files = written(tmp_path / "made")
        made = {name: one.artifact_cache.store.ingest(files[name]) for name in ("kept", "shards")}
        work = (done("filter", kept=made["kept"]), done("pack", shards=made["shards"]))
        own = [replace(fact, node=one.identity.node_id) for fact in work]
        await found(one, facts=(started(), *own))
        damage(one, made["kept"], INDEX_FILE)
        with pytest.raises(NotFoundError, match="no sample in reach") as caught:
            await why(one, REAL[5].id)
        assert "its log says which artifacts are damaged" in caught.value.hint
        damage(one, made["shards"], DOCUMENTS_FILE)
        with pytest.raises(NotFoundError, match="of python are on no node in reach") as caught:
            await why(one, "python:0")
        assert "its log says which artifacts are damaged" in caught.value.hint


async def test_two_samples_on_two_nodes_that_begin_alike_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alike = peer_pb2.TracedSample(id=REAL[5].id[:4] + "0" * 60)
    others_tell(monkeypatch, alike)
    async with two_holders(tmp_path, "") as (one, _, _):
        with pytest.raises(UsageError, match="could be any of"):
            await why(one, REAL[5].id[:4])
        assert (await why(one, REAL[5].id))["sample"]["id"] == REAL[5].id


async def test_what_nobody_in_reach_holds_is_told_with_whom_to_start(tmp_path: Path) -> None:
    async with two_holders(tmp_path, "kept shards") as (one, _, made):
        take_for_alive(one)
        with pytest.raises(NotFoundError, match="of python are on no node in reach") as caught:
            await why(one, "python:0")
        assert caught.value.hint == "start bbbbbbbb, which made them"
        assert [*sources(await why(one, CHILD.id))] == [CHILD.id, REAL[3].id]
        one.artifact_cache.store.remove(made["train"])
        with pytest.raises(NotFoundError, match="no sample in reach is called") as caught:
            await why(one, REAL[3].id)
        assert caught.value.hint == "what bbbbbbbb made isn't all in reach: start it"


async def test_what_work_has_made_is_looked_through_once_for_any_number_of_questions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[State] = []

    def noting(state: State) -> list[Output]:
        looked.append(state)
        return outputs_of(state)

    for module in ("local_trace", "cluster_trace"):
        monkeypatch.setattr(f"jupiterd.daemon.queries.cluster.{module}.outputs_of", noting)
    async with two_holders(tmp_path, "train") as (one, other, _):
        for node in (one, other, one):
            assert [*sources(await why(node, CHILD.id))] == [CHILD.id, REAL[3].id]
        assert len(looked) == 2
        await one.replica.append(1, [pinned(MODEL)])
        await why(one, CHILD.id)
        assert len(looked) == 3


async def test_what_is_not_here_is_looked_for_on_the_disk_beside_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two_holders(tmp_path, "kept") as (one, _, _):
        holds, asking = one.artifact_cache.store.holds, set[threading.Thread]()

        def noting(artifact: ArtifactId) -> bool:
            asking.add(threading.current_thread())
            return holds(artifact)

        trace = cluster_trace.trace_of(one.observers.sources)
        monkeypatch.setattr(one.artifact_cache.store, "holds", noting)
        assert await trace.silent() == ["bbbbbbbb"]
        assert asking
        assert threading.main_thread() not in asking


async def test_a_member_that_does_not_answer_holds_nobody_up_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(cluster_trace, "ANSWER_TIMEOUT_S", 0.2)
    async with two_holders(tmp_path, "kept shards") as (one, _, _):
        monkeypatch.setattr("jupiterd.daemon.queries.cluster.local_trace.trace_for_member", never)
        assert (await why(one, REAL[5].id))["sample"]["license"] == "PSF-2.0"
        with pytest.raises(NotFoundError, match="of python are on no node in reach"):
            await why(one, "python:0")


BROKEN = (b"", b"{", b"[]", b"[" * 100_000, b"\xff", b'{"parents": 3}', REAL[6].to_json().encode())


@pytest.mark.parametrize("record", BROKEN)
async def test_a_record_that_is_none_counts_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record: bytes
) -> None:
    told = peer_pb2.TracedSample(id=REAL[5].id, record=record, batches=["../../etc", "0" * 64])
    others_tell(monkeypatch, told)
    async with two_holders(tmp_path, "train") as (one, _, made):
        assert (await why(one, REAL[5].id))["sample"]["filter_scores"] == {"quality": 0.5}
        one.artifact_cache.store.remove(made["kept"])
        with pytest.raises(NotFoundError):
            await why(one, REAL[5].id)
