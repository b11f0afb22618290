"""Purging a source: what is recorded, what is refused, and where the proof stands."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from jupiterd.cluster.facts.facts import CycleStarted, Fact, SourcePurged, WorkCompleted
from jupiterd.cluster.ledger.state import State
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.catalog.cycle_sources import purge_proofs
from jupiterd.daemon.commands.purge_source import purge_source
from jupiterd.daemon.queries.cycle.run_documents import audit_document
from jupiterd.errors import JupiterError, NotFoundError, UsageError
from jupiterd.ids import CycleId
from jupiterd.protocol.commands.data_commands import PurgeSource
from tests.support.cluster.building import CYCLE, NODES, checkpoint, started
from tests.support.daemon.two_nodes import found, serving

DOMAIN = """
version: 1
domain: python
title: A tiny domain
language: code:python
data_sources:
  - {kind: python_stdlib, name: stdlib}
  - {kind: folder, name: docs, path: /data, license: MIT}
holdout: {salt: s}
"""
BEGUN = replace(started(), domain_yaml=DOMAIN)
LATER = CycleId("e" * 16)


def on(domain: str, cycle: CycleId) -> CycleStarted:
    return replace(BEGUN, domain=domain, cycle=cycle, started_at="2026-02-01T00:00:00Z")


def done(phase: str, round_number: int, **counts: float) -> WorkCompleted:
    item = f"r{round_number}/{phase}/0"
    named = {name.replace("_of_", ":"): value for name, value in counts.items()}
    return WorkCompleted(CYCLE, round_number, phase, item, NODES[0], {}, named)


packed = partial(done, "pack")


async def purge(node: Node, **arguments: str) -> dict[str, Any]:
    return await purge_source(node._begin_term(1).term, PurgeSource.read(arguments))


async def test_a_domain_s_source_is_purged_for_all_its_cycles_and_later_ones(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(BEGUN,))
        done = await purge(one, source="docs")
        assert done == {"source": "docs", "domain": "python", "cycle": "", "already": False}
        assert one.replica.state.purged("python", CYCLE) == {"docs"}
        assert one.replica.state.purged("python", LATER) == {"docs"}
        assert one.replica.state.purged("cooking", CYCLE) == frozenset()
        assert (await purge(one, source="docs"))["already"] is True


async def test_a_cycle_s_source_is_purged_for_that_cycle_alone(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(BEGUN, on("python", LATER)))
        await purge(one, source="docs", cycle=CYCLE[:4])
        assert one.replica.state.purged("python", CYCLE) == {"docs"}
        assert one.replica.state.purged("python", LATER) == frozenset()


async def test_without_a_name_the_latest_cycle_s_domain_is_meant(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(BEGUN, on("cooking", LATER)))
        assert (await purge(one, source="docs"))["domain"] == "cooking"
        assert (await purge(one, source="docs", domain="python"))["domain"] == "python"


@pytest.mark.parametrize(
    ("facts", "arguments", "kind", "why"),
    [
        ((), {"source": "docs"}, NotFoundError, "no cycle was started"),
        ((BEGUN,), {"source": "dogs"}, NotFoundError, "is called dogs"),
        ((BEGUN,), {"source": "docs", "domain": "x"}, NotFoundError, "on domain x"),
        ((BEGUN,), {"source": "docs", "cycle": "f"}, NotFoundError, "no cycle is called f"),
        ((BEGUN,), {"source": " "}, UsageError, "1 to 2048"),
        ((BEGUN,), {"source": "a" * 3000}, UsageError, "1 to 2048"),
        ((BEGUN,), {"source": "a\x1b[2J"}, UsageError, "1 to 2048"),
    ],
)
async def test_what_is_no_known_source_is_refused_with_those_that_are(
    tmp_path: Path, facts: tuple[Fact, ...], arguments: dict[str, str],
    kind: type[JupiterError], why: str,
) -> None:  # fmt: skip
    async with serving(tmp_path, "one") as one:
        await found(one, facts=facts)
        with pytest.raises(kind, match=why) as refused:
            await purge(one, **arguments)
        if "dogs" in why:
            assert "stdlib" in refused.value.hint
        assert one.replica.state.purged("python", CYCLE) == frozenset()


async def test_an_address_need_not_be_in_the_domain_file(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(BEGUN,))
        await purge(one, source="https://example.org/forum")
        assert one.replica.state.purged("python", CYCLE) == {"https://example.org/forum"}


async def test_the_audit_shows_what_each_round_packed_since_holds_of_it(tmp_path: Path) -> None:
    facts = (
        BEGUN, SourcePurged("python", "docs"), packed(1), packed(2, in_shards_of_docs=0.0),
        checkpoint("k1"),
    )  # fmt: skip
    async with serving(tmp_path, "one") as one:
        await found(one, facts=facts)
        (only,) = (await audit_document(one.replica.state, one.artifact_cache.store, ""))["audit"]
        proof = {"round": 2, "samples": 0, "left_out": 0, "collected": True}
        assert only["purged"] == [{"source": "docs", "rounds": [proof]}]


async def test_a_round_that_holds_some_of_it_is_wrong(tmp_path: Path) -> None:
    facts = (
        BEGUN, SourcePurged("python", "docs"), packed(1, in_shards_of_docs=3.0), checkpoint("k1"),
    )  # fmt: skip
    async with serving(tmp_path, "one") as one:
        await found(one, facts=facts)
        (only,) = (await audit_document(one.replica.state, one.artifact_cache.store, ""))["audit"]
        assert only["ok"] is False


def test_a_run_without_a_purge_has_nothing_to_prove() -> None:
    state = State()
    state.apply(BEGUN, (1, "a", "u", 1))
    assert purge_proofs(state.cycles[CYCLE], state) == []


def proofs(*facts: Fact) -> list[dict[str, Any]]:
    state = State()
    for number, fact in enumerate((BEGUN, SourcePurged("python", "docs"), *facts), 1):
        state.apply(fact, (1, "a", "u", number))
    (only,) = purge_proofs(state.cycles[CYCLE], state)
    return only["rounds"]


def test_the_proof_tells_what_a_round_left_out_wherever_it_did() -> None:
    (only,) = proofs(
        done("filter", 1, left_out_of_docs=7.0),
        done("filter", 2, left_out_of_docs=4.0),
        packed(2, in_shards_of_docs=0.0, left_out_of_docs=1.0),
    )
    assert only == {"round": 2, "samples": 0, "left_out": 5, "collected": True}


def test_the_proof_tells_that_a_source_isn_t_read_any_more() -> None:
    (only,) = proofs(
        done("collect", 2, not_collected_of_docs=1.0), packed(2, in_shards_of_docs=0.0)
    )
    assert only == {"round": 2, "samples": 0, "left_out": 0, "collected": False}


def test_what_was_united_anew_counts_once() -> None:
    before = done("filter", 2, left_out_of_forum=4.0)
    anew = replace(before, item=f"{before.item}/1a2b3c4d",
                   counts={"left_out:forum": 4.0, "left_out:docs": 3.0})  # fmt: skip
    (only,) = proofs(before, anew, packed(2, in_shards_of_docs=0.0, left_out_of_docs=0.0))
    assert only["left_out"] == 3
    repeated = replace(anew, item=f"{before.item}/ffffffff", counts={"left_out:docs": 2.0})
    (only,) = proofs(before, repeated, anew, packed(2, in_shards_of_docs=0.0))
    assert only["left_out"] == 3
