"""Outer steps of islands, found in the ledger and brought to a rank with the ways they merge."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import OuterStepAbandoned, OuterStepTaken
from jupiterd.cluster.ledger.lww_registers import fact_hash
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.executor import outer_step_inputs
from jupiterd.daemon.runtime.work_events import (
    PseudoGradientStored,
)
from jupiterd.errors import DiskFullError, PeerUnreachableError
from jupiterd.ids import ArtifactId, CycleId
from jupiterd.protocol.frames import OuterStepArrived, OuterStepMissing, PseudoGradientWritten
from jupiterd.protocol.training_values import PseudoGradient
from tests.support.cluster.building import CYCLE, outer_step
from tests.support.daemon.two_nodes import TIMEOUT_S, serving, unite, until

ISLAND = CycleId("e" * 16)
PARAMS = {"island": {"run": CYCLE, "island": ISLAND, "round": 1, "kind": "int8"}}
BEGINNING = replace(outer_step(0), islands=(), pseudo_gradients=(), tokens=())
ROOT = fact_hash(BEGINNING)


@pytest.fixture
async def two(tmp_path: Path) -> AsyncGenerator[tuple[Node, Node]]:
    async with AsyncExitStack() as stack:
        nodes = [await stack.enter_async_context(serving(tmp_path, name)) for name in "ab"]
        await unite(*nodes)
        everybody = frozenset(node.identity.node_id for node in nodes)
        for node in nodes:
            node.artifact_cache._alive = lambda: everybody  # nobody beats here
        yield nodes[0], nodes[1]


async def handed_in(node: Node, after: str) -> OuterStepArrived | OuterStepMissing:
    found: list[OuterStepArrived | OuterStepMissing] = []
    await node.worker_runner._outer.bring(PARAMS, after, found.append)
    (only,) = found
    return only


async def brought(node: Node, after: str) -> OuterStepArrived:
    found = await handed_in(node, after)
    assert isinstance(found, OuterStepArrived)
    return found


async def missing(node: Node, after: str) -> str:
    """Return why it won't come."""
    found = await handed_in(node, after)
    assert isinstance(found, OuterStepMissing)
    assert found.after == after
    return found.reason


def way_of(node: Node, content: bytes) -> ArtifactId:
    folder = node.state_dir.spool / "way"
    folder.mkdir()
    (folder / "way").write_bytes(content)
    return node.artifact_cache.store.ingest(folder)


def merging(pseudo_gradient: ArtifactId, parent: str = ROOT, number: int = 1) -> OuterStepTaken:
    return replace(outer_step(number, parent), pseudo_gradients=(pseudo_gradient,))


async def test_a_rank_that_begins_is_told_of_the_first_step(two: tuple[Node, Node]) -> None:
    one, _ = two
    await one.replica.append(1, [BEGINNING])
    arrived = await brought(one, "")
    assert (arrived.order.step, arrived.order.number, list(arrived.pseudo_gradients)) == (
        ROOT,
        0,
        [],
    )
    assert (arrived.order.steps, arrived.order.batch_sequences, arrived.order.positions) == (
        30,
        4,
        "0-120",
    )
    assert not arrived.is_counted
    assert arrived.is_compared  # nobody knows yet whether all train the same model


async def test_a_step_comes_once_it_is_taken_with_its_ways_from_wherever_they_are(
    two: tuple[Node, Node],
) -> None:
    one, other = two
    await one.replica.append(1, [BEGINNING])
    pseudo_gradient = way_of(other, b"\1\2\3")
    waiting = asyncio.ensure_future(brought(one, ROOT))
    await asyncio.sleep(0)
    assert not waiting.done()
    step = merging(pseudo_gradient)
    await one.replica.append(1, [step])
    arrived = await waiting
    assert (arrived.after, arrived.order.step, arrived.order.number) == (ROOT, fact_hash(step), 1)
    assert [(Path(path) / "way").read_bytes() for path in arrived.pseudo_gradients] == [b"\1\2\3"]
    assert (arrived.rate, arrived.momentum, list(arrived.tokens)) == (0.5, 0.9, [960])
    assert arrived.is_counted
    assert not arrived.is_compared


async def test_a_rank_on_a_line_that_counts_no_more_is_told_so(
    two: tuple[Node, Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outer_step_inputs, "OFF_BRANCH_S", 0.05)
    one, _ = two
    left = outer_step(1, ROOT)
    await one.replica.append(1, [BEGINNING, left, outer_step(1, ROOT, total_tokens=9)])
    assert "without this one" in await missing(one, fact_hash(left))


async def test_a_rank_on_a_lost_line_is_told_so_however_busily_the_others_go_on(
    two: tuple[Node, Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outer_step_inputs, "OFF_BRANCH_S", 0.1)
    one, _ = two
    left, step = outer_step(1, ROOT), outer_step(1, ROOT, total_tokens=9)
    await one.replica.append(1, [BEGINNING, left, step])
    waiting = asyncio.ensure_future(missing(one, fact_hash(left)))
    async with asyncio.timeout(TIMEOUT_S):
        while not waiting.done():
            step = outer_step(step.number + 1, fact_hash(step))
            await one.replica.append(1, [step])
    assert "without this one" in await waiting


async def test_a_step_that_this_ledger_lacks_is_waited_for_longer(
    two: tuple[Node, Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outer_step_inputs, "OFF_BRANCH_S", 0.0)
    one, _ = two
    unheard_of = outer_step(1, ROOT)
    follows = outer_step(2, fact_hash(unheard_of))
    await one.replica.append(1, [BEGINNING])
    waiting = asyncio.ensure_future(brought(one, fact_hash(unheard_of)))
    await asyncio.sleep(0)
    assert not waiting.done()
    await one.replica.append(1, [unheard_of, replace(follows, pseudo_gradients=())])
    arrived = await waiting
    assert arrived.order.number == 2


async def test_a_way_that_nobody_has_yet_is_waited_for(
    two: tuple[Node, Node], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(outer_step_inputs, "RETRY_S", 0.01)
    one, other = two
    away = way_of(other, b"away")
    other.artifact_cache.store.remove(away)
    await one.replica.append(1, [BEGINNING, merging(away)])
    waiting = asyncio.ensure_future(brought(one, ROOT))
    await until(lambda: "way_not_fetched" in caplog.messages)
    assert way_of(other, b"away") == away
    arrived = await waiting
    assert arrived.order.step == fact_hash(merging(away))


async def test_a_way_that_never_comes_is_said_to_be_missing(
    two: tuple[Node, Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outer_step_inputs, "RETRY_S", 0.01)
    monkeypatch.setattr(outer_step_inputs, "UNREACHABLE_S", 0.1)
    one, _ = two
    await one.replica.append(1, [BEGINNING, merging(ArtifactId("7" * 64))])
    assert "no node that can be reached holds" in await missing(one, ROOT)


async def test_a_full_disk_is_told_as_one_and_no_way_is_fetched_any_more(
    two: tuple[Node, Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outer_step_inputs, "RETRY_S", 0.01)
    monkeypatch.setattr(outer_step_inputs, "UNREACHABLE_S", 0.1)
    one, _ = two
    pseudo_gradients = (ArtifactId("7" * 64), ArtifactId("8" * 64))
    fetching: dict[ArtifactId, asyncio.Task[object] | None] = {}

    async def ensure(pseudo_gradient: ArtifactId) -> Path:
        fetching[pseudo_gradient] = asyncio.current_task()
        if pseudo_gradient == pseudo_gradients[0]:
            raise DiskFullError("no room for a way")
        raise PeerUnreachableError("it is broken off, again and again")

    monkeypatch.setattr(one.artifact_cache, "ensure", ensure)
    step = replace(merging(pseudo_gradients[0]), pseudo_gradients=pseudo_gradients)
    await one.replica.append(1, [BEGINNING, step])
    assert await missing(one, ROOT) == "the outer step is missing: no room for a way"
    assert fetching.keys() == set(pseudo_gradients)
    await until(lambda: all(task is not None and task.done() for task in fetching.values()))


async def test_ways_are_waited_for_no_longer_than_their_line_counts(two: tuple[Node, Node]) -> None:
    one, _ = two
    left = merging(ArtifactId("7" * 64))
    pseudo_gradient = way_of(one, b"\1")
    await one.replica.append(1, [BEGINNING, left])
    waiting = asyncio.ensure_future(brought(one, ROOT))
    await until(
        lambda: one.worker_runner._outer._line(CYCLE, 1) != {} and len(asyncio.all_tasks()) > 1
    )
    await one.replica.append(
        1, [OuterStepAbandoned(CYCLE, fact_hash(left)), merging(pseudo_gradient)]
    )
    arrived = await waiting
    assert arrived.order.step == fact_hash(merging(pseudo_gradient))


async def test_a_way_that_a_worker_has_written_lies_in_the_store(two: tuple[Node, Node]) -> None:
    one, _ = two
    spool = one.state_dir.spool / "work"
    (spool / "way-1").mkdir(parents=True)
    (spool / "way-1" / "way").write_bytes(b"\1\2\3")
    written = PseudoGradientWritten(
        "way-1",
        PseudoGradient(
            ROOT, 960, 1.5, 12.5, b"1234", stands_at="step 7", digest=b"\7" * 32, counted=90
        ),
    )
    made = await one.worker_runner._event(written, spool)
    assert isinstance(made, PseudoGradientStored)
    assert one.artifact_cache.store.holds(made.artifact)
    assert made.pseudo_gradient == replace(written.pseudo_gradient, size_bytes=3)
