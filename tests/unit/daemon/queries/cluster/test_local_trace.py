"""What a node tells another member of samples, and how much of it at most."""

from dataclasses import replace
from pathlib import Path

import pytest

from jupiterd.cycle.data.lineage import Sample
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.catalog.sample_locations import outputs_of
from jupiterd.daemon.queries.cluster import local_trace
from jupiterd.daemon.queries.cluster.local_trace import MAX_REQUESTED, SHOWN_CHARACTERS, trace_here
from jupiterd.rpc import peer_pb2
from tests.support.cluster.building import started
from tests.support.daemon.two_nodes import found, serving
from tests.support.workers.data_material import real, write
from tests.unit.daemon.queries.cluster.test_provenance_document import done, prepared

MANY = [real(f"text {number}") for number in range(MAX_REQUESTED + 1)]
LONG = real("é" * 5000)


def traced(node: Node, *ids: str) -> list[peer_pb2.TracedSample]:
    outputs = outputs_of(node.replica.state)
    request = peer_pb2.TraceRequest(samples=ids)
    return list(trace_here(node.artifact_cache.store, outputs, request).reply.samples)


async def keep(node: Node, folder: Path, samples: list[Sample]) -> None:
    kept = node.artifact_cache.store.ingest(write(folder, samples))
    await found(node, facts=(started(), done("filter", kept=kept)))


async def test_a_question_for_more_samples_than_may_be_asked_for_is_cut(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await keep(one, tmp_path / "kept", MANY)
        ids = [sample.id for sample in MANY]
        assert [part.id for part in traced(one, *ids)] == ids[:MAX_REQUESTED]


async def test_records_that_have_no_room_in_an_answer_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, "one") as one:
        await keep(one, tmp_path / "kept", MANY)
        size_bytes = len(traced(one, MANY[0].id)[0].record)
        monkeypatch.setattr(local_trace, "MAX_RECORDS_BYTES", 2 * size_bytes + 1)
        told = traced(one, *(sample.id for sample in MANY[:4]))
        assert [bool(part.record) for part in told] == [True, True, False, False]


async def test_of_a_long_text_only_what_is_shown_is_told(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await keep(one, tmp_path / "kept", [LONG])
        (part,) = traced(one, LONG.id)
        sample = Sample.from_json(part.record.decode())
        assert sample == replace(LONG, text=LONG.text[:SHOWN_CHARACTERS])
        assert part.text_bytes == 10_000


@pytest.mark.parametrize("wanted", ["", "abc", "zzzz", "../../etc", "a" * 65, "%s", "A" * 64])
async def test_what_is_no_sample_s_id_is_passed_over(tmp_path: Path, wanted: str) -> None:
    async with serving(tmp_path, "one") as one:
        await keep(one, tmp_path / "kept", MANY)
        assert traced(one, wanted) == []


@pytest.mark.parametrize("wanted", ["kept", "../../etc", "0" * 64])
async def test_tokens_of_what_are_no_shards_of_a_run_are_not_told(
    tmp_path: Path, wanted: str
) -> None:
    async with serving(tmp_path, "one") as one:
        made = await prepared(one, tmp_path / "made")
        outputs, store = outputs_of(one.replica.state), one.artifact_cache.store
        request = peer_pb2.TraceRequest(shards=made.get(wanted, wanted), offset=0)
        assert not trace_here(store, outputs, request).reply.HasField("token")
        request.shards = made["shards"]
        assert trace_here(store, outputs, request).reply.token.document.end > 0
        request.offset = (1 << 64) - 1
        beyond = trace_here(store, outputs, request).reply.token
        assert (beyond.tokens > 0, beyond.HasField("document")) == (True, False)
