"""Rounds that overlap, as the worker's side of them: real workers, a leader of the tests."""

import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jupiterd.protocol.frames import (
    CheckpointWritten,
    OuterStepWanted,
    Progressed,
    PseudoGradientWritten,
    SaveState,
    StateSaved,
)
from jupiterd.protocol.training_values import RoundOrder
from jupiterd.workers import link
from jupiterd.workers.islands.island import IslandView as OuterIsland
from jupiterd.workers.train.checkpoints.checkpoint import load_state
from jupiterd.workers.train.island import outer_rounds
from jupiterd.workers.train.island.saved_island import SavedIsland
from jupiterd.workers.training_engine import Tensors
from tests.support.workers.island_threads import EVERY, ROUNDS, STEPS, Island, plan, tensors
from tests.support.workers.outer_leader import DIGEST_BYTES, WAIT_S, OuterLeader, digests
from tests.support.workers.tiny_run import SEQ_LEN, make_inputs


@pytest.fixture(autouse=True)
def _every_step_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "PROGRESS_INTERVAL_S", -1.0)
    monkeypatch.setattr(outer_rounds, "MOMENT_S", 0.2)
    monkeypatch.setattr(outer_rounds, "SAVE_AFTER_S", 0.0)


@pytest.fixture
def inputs(tmp_path: Path) -> dict[str, str]:
    return make_inputs(tmp_path)


def test_islands_whose_rounds_overlap_train_on_while_the_ways_are_on_their_way(
    inputs: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    leader = OuterLeader(tmp_path, plan(), {"a": 2, "b": 3}, EVERY, lag=2)
    leader.expected = {"a", "b", "a third one, which never comes"}
    islands = [Island(leader, name, inputs) for name in ("a", "b")]
    for island in islands:
        leader.wait_for_step(island.rank, 2 * EVERY)
        assert [pseudo_gradient.after for pseudo_gradient in island.pseudo_gradients] == [
            "step 0"
        ], "the second is measured later"
    leader.expected = {"a", "b"}
    leader.close_round()
    assert [island.ended().error for island in islands] == [None, None]
    log = capsys.readouterr().out
    assert digests(log, "a") == digests(log, "b")
    assert list(digests(log, "a")) == list(range(ROUNDS + 2))
    assert len(set(digests(log, "a").values())) == ROUNDS + 1, "the second step merges nothing"
    for island, batch in zip(islands, (2, 3), strict=True):
        assert [pseudo_gradient.after for pseudo_gradient in island.pseudo_gradients] == [
            f"step {n}" for n in range(ROUNDS)
        ]
        stand = [(f"step {n}", digests(log, "a")[n]) for n in range(1, ROUNDS + 1)]
        assert [
            (pseudo_gradient.stands_at, pseudo_gradient.digest.hex())
            for pseudo_gradient in island.pseudo_gradients
        ] == stand
        assert {pseudo_gradient.tokens for pseudo_gradient in island.pseudo_gradients} == {
            EVERY * batch * SEQ_LEN
        }
        assert len(island.losses) == STEPS
        last = island.rank.said(CheckpointWritten)[-1].progress
        assert (last.step, last.tokens) == (STEPS, STEPS * batch * SEQ_LEN)
    a, b = (tensors(island.checkpoint(STEPS)) for island in islands)
    shared = [name for name in a if name.startswith(("model.", "outer w", "outer m"))]
    assert all(np.array_equal(a[name], b[name]) for name in shared)


def test_an_island_that_begins_again_sends_its_way_again_and_has_what_it_trained_since(
    inputs: dict[str, str], tmp_path: Path
):
    leader = OuterLeader(tmp_path, plan(), {"a": 2, "b": 3}, EVERY, lag=2)
    island = Island(leader, "b", inputs)
    leader.wait_for_step(island.rank, 6)
    leader.wait_for(island.rank, PseudoGradientWritten)
    leader.stop(island.rank)
    finished = island.ended().finished
    assert finished is not None
    folder = island.checkpoint(int(finished.summary["step"]))
    state, kept = load_state(folder).outer or {}, tensors(folder)
    assert [order["number"] for order in state["orders"]] == [0, 1]
    assert state["current"]["number"] == 1
    name = "model.norm.weight"
    assert not np.array_equal(kept[f"outer base.{name}"], kept[f"outer weights.{name}"])
    leader.forget_ways()
    again = Island(leader, "b", inputs | {"checkpoint": str(folder)})
    leader.wait_for_step(again.rank, 2 * EVERY)
    leader.wait_for(again.rank, PseudoGradientWritten)
    sent = [
        replace(pseudo_gradient, elapsed_s=0.0, logits=b"")
        for pseudo_gradient in (*island.pseudo_gradients, *again.pseudo_gradients)
    ]
    assert (sent[0], again.pseudo_gradient(0)) == (sent[1], island.pseudo_gradient(0))
    assert sent[1].stands_at == "step 1"
    assert len(sent[1].digest) == DIGEST_BYTES
    other = Island(leader, "a", inputs)
    leader.wait_for_line(3)
    assert again.ended().error is None
    assert other.ended().error is None
    assert [pseudo_gradient.after for pseudo_gradient in again.pseudo_gradients] == [
        f"step {n}" for n in range(ROUNDS)
    ]
    assert not leader.adrift


def test_what_is_kept_while_a_round_begins_is_of_that_round_or_of_the_one_before(
    inputs: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    leader = OuterLeader(tmp_path, plan(), {"a": 2, "b": 3}, EVERY, lag=2)
    has_begun, is_asked, is_kept = threading.Event(), threading.Event(), threading.Event()
    begin, read = OuterIsland.begin, SavedIsland.tensors

    def begin_and_be_asked(island: OuterIsland, order: RoundOrder) -> None:
        if order.number == 1 and not is_asked.is_set():
            is_asked.set()
            leader.ranks[0].tell(SaveState(0))
            is_kept.wait(0.5)
        begin(island, order)
        if order.number == 1:
            has_begun.set()

    def read_at_that_moment(saved: SavedIsland) -> Tensors:
        found = read(saved)
        if threading.current_thread().name == "link":
            is_kept.set()
            has_begun.wait(WAIT_S)
        return found

    monkeypatch.setattr(OuterIsland, "begin", begin_and_be_asked)
    monkeypatch.setattr(SavedIsland, "tensors", read_at_that_moment)
    island = Island(leader, "b", inputs)
    leader.wait_for(island.rank, StateSaved)
    (kept,) = island.rank.said(StateSaved)
    assert kept.checkpoint is not None
    folder = island.rank.folder / kept.checkpoint.path
    current = (load_state(folder).outer or {})["current"]["number"]
    has_base = "outer base.model.norm.weight" in tensors(folder)
    assert (current, has_base) in {(0, False), (1, True)}
    leader.stop(island.rank)
    island.ended()


def test_a_round_that_others_have_ended_is_not_gone_on_with_by_whoever_begins_again(
    inputs: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    long = plan(steps=4000, checkpoint_every_steps=4000)
    leader = OuterLeader(tmp_path, long, {"b": 2}, 2000)
    island = Island(leader, "b", inputs)
    leader.wait_for(island.rank, Progressed, 3)
    monkeypatch.setattr(outer_rounds, "MOMENT_S", WAIT_S)
    leader.close_round()
    leader.wait_for(island.rank, OuterStepWanted, 3)
    leader.stop(island.rank)
    island.ended()
    (made,) = island.rank.said(CheckpointWritten)
    monkeypatch.setattr(outer_rounds, "MOMENT_S", 0.2)
    again = Island(leader, "b", inputs | {"checkpoint": str(island.rank.folder / made.path)})
    leader.wait_for_step(again.rank, 2001)
    leader.stop(again.rank)
    again.ended()
    steps = [frame.done for frame in again.rank.said(Progressed) if "loss" in frame.values]
    assert steps[0] == 2001


def test_of_rounds_that_overlap_one_that_closes_without_an_island_costs_it_that_round(
    inputs: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    leader = OuterLeader(tmp_path, plan(), {"a": 2, "b": 3}, EVERY, lag=2)
    leader.expected = {"a"}
    leader.left_out = {(n, "b") for n in range(ROUNDS + 2)}
    first = Island(leader, "a", inputs).ended()
    assert first.error is None
    late = Island(leader, "b", inputs).ended()
    assert late.error is None
    log = capsys.readouterr().out
    assert digests(log, "a") == digests(log, "b")
    ends = [tensors(island.checkpoint(STEPS)) for island in (first, late)]
    assert all(np.array_equal(ends[0][n], ends[1][n]) for n in ends[0] if n.startswith("model."))
