"""The members as the router sees them: what keeps one from answering, and who has the files."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from jupiterd.cluster.serving.routing import ServingNode
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.cluster.values.hardware import Gpu
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.serving import serving_fleet
from jupiterd.ids import ArtifactId
from tests.support.daemon.two_nodes import lead, serving, take_for_alive, unite
from tests.support.workers.tiny_models import write_model

CARD = Gpu("a card", "GPU-1", 1 << 34, "cuda")


@pytest.fixture
async def both(tmp_path: Path) -> AsyncGenerator[tuple[Node, Node]]:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two") as two:
        await unite(one, two)
        one.heartbeats.roster_changed()
        beat = two.heartbeats.message(one.identity.node_id)
        beat.about.CopyFrom(two.observers.description.describe().about)
        one.heartbeats.heard(two.identity.node_id, beat)
        take_for_alive(one, two)
        yield one, two


def seen(one: Node, wanted: Node, model: ServedModel) -> ServingNode:
    found = one.serving.fleet.nodes(model, {})
    return next(each for each in found if each.node == wanted.identity.node_id)


MODEL = ServedModel("first-run", ArtifactId("a" * 64))


async def test_a_member_is_seen_with_what_it_is(both: tuple[Node, Node]) -> None:
    one, two = both
    own, other = seen(one, one, MODEL), seen(one, two, MODEL)
    assert (own.is_own, other.is_own, other.name, other.absence) == (True, False, "two", "")
    assert other.can_compute == (two.hardware.can_answer or bool(two.hardware.engines))
    assert other.takes == other.can_compute


async def test_a_member_that_only_has_an_engine_for_answers_is_asked_too(
    both: tuple[Node, Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = both
    for can_answer in (True, False):
        told = replace(two.hardware, engines=(), can_answer=can_answer)
        read = type(told).from_plain(told.to_plain())
        monkeypatch.setattr(one.local_view, "hardware_of", lambda _, read=read: read)
        assert seen(one, two, MODEL).takes is can_answer


async def test_who_has_a_model_is_asked_once_for_a_while_and_known_for_good(
    both: tuple[Node, Node], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = both
    folder = write_model(tmp_path / "model", "llama")
    model = ServedModel("first-run", two.artifact_cache.store.ingest(folder))
    asked = list[str]()
    held_by = one.artifact_cache.held_by

    async def noted(node, artifacts, timeout_s):
        asked.append(node)
        return await held_by(node, artifacts, timeout_s)

    monkeypatch.setattr(one.artifact_cache, "held_by", noted)
    assert model.artifact is not None
    assert not seen(one, two, model).holds
    await one.serving.fleet.find_holders(model.artifact)
    await one.serving.fleet.find_holders(model.artifact)
    assert sorted(asked) == sorted([one.identity.node_id, two.identity.node_id])
    assert (seen(one, two, model).holds, seen(one, one, model).holds) == (True, False)
    monkeypatch.setattr(serving_fleet, "KNOWN_FOR_S", 0.0)
    await one.serving.fleet.find_holders(model.artifact)
    assert asked[2:] == [one.identity.node_id], "it was asked again though it had said that it has"


async def test_a_drained_machine_and_one_whose_gpu_trains_take_nothing(
    both: tuple[Node, Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = both
    with_card = replace(two.hardware, gpus=(CARD,), devices=("cuda:0",), engines=("torch",))
    monkeypatch.setattr(one.local_view, "hardware_of", lambda _: with_card)
    assert seen(one, two, MODEL).takes
    seats = [{"gang": [{"node": two.identity.node_id, "rank": 0}]}]
    monkeypatch.setattr(one.local_view, "running", lambda: seats)
    assert seen(one, two, MODEL).is_busy_training
    assert not seen(one, two, MODEL).takes
    monkeypatch.setattr(one.local_view, "running", list)
    await lead(one)
    await one.commands.execute_here("node.role", {"node": "two", "role": "idle"})
    assert seen(one, two, MODEL).is_drained
