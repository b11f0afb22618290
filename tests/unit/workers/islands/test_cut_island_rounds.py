"""Rounds of an island whose model is cut over its ranks, beside an island that holds it whole."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jupiterd.daemon.artifacts.checkpoint_assembly import assemble
from jupiterd.protocol.frames import PseudoGradientWritten
from jupiterd.workers.train.checkpoints.checkpoint import load_state
from tests.support.workers.gangs import ENGINES, Gangs
from tests.support.workers.island_threads import Island, tensors
from tests.support.workers.outer_leader import OuterLeader, Rank, digests
from tests.support.workers.tiny_run import make_inputs
from tests.unit.workers.islands.test_islands_of_both_engines import Processes, plan

pytestmark = [pytest.mark.net, pytest.mark.timeout(150), pytest.mark.xdist_group("gangs")]

STEPS, EVERY = 16, 4
ROUNDS = STEPS // EVERY
BATCHES = {"cut": 4, "whole": 3}


def cut(stage: int, *parts: int) -> dict[str, Any]:
    return {"partition": {"stage": stage, "parts": list(parts)}, "micro_batch_sequences": 2}


def together(ranks: list[Rank], step: int, folder: Path) -> Path:
    """Return a checkpoint of the parts of all ranks."""
    assemble([rank.folder / f"part-{step:08}" for rank in ranks], folder)
    return folder


def ranks_of(leader: OuterLeader, island: str) -> list[Rank]:
    """Return an island's ranks, in their order."""
    return sorted(of_island(leader, island), key=lambda rank: rank.number)


def of_island(leader: OuterLeader, island: str) -> list[Rank]:
    return [rank for rank in leader.ranks if rank.island == island]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("stage", "lag"), [(3, 1), (2, 2), pytest.param(1, 1, marks=pytest.mark.full)]
)
def test_after_each_round_all_ranks_of_both_have_the_same_weights(
    gangs: Gangs,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    engine: str,
    stage: int,
    lag: int,
):
    leader = OuterLeader(tmp_path, plan(STEPS), BATCHES, EVERY, lag=lag)
    processes = Processes(gangs, leader, tmp_path)
    processes.begin("cut", engine, 2, **cut(stage, 3, 1))
    whole = Island(leader, "whole", make_inputs(tmp_path / "whole"))
    processes.ended()
    assert whole.ended().error is None
    wanted = digests(capsys.readouterr().out, "whole")
    assert len(wanted) >= ROUNDS + lag
    assert processes.digests("cut", 0) == processes.digests("cut", 1) == wanted
    assert not leader.adrift
    ranks = of_island(leader, "cut")
    sent = [rank.said(PseudoGradientWritten) for rank in ranks]
    assert sorted(map(len, sent)) == [0, ROUNDS], "the first of them sends it"
    first = next(told for told in sent if told)
    assert first[0].pseudo_gradient.logits, "they let others see that it is the same model"
    last = tensors(together(ranks_of(leader, "cut"), STEPS, tmp_path / "checkpoint"))
    theirs = tensors(whole.checkpoint(STEPS))
    for name in theirs:
        if name.startswith(("model.", "outer w", "outer m")):
            assert np.array_equal(last[name], theirs[name]), name
    assert last.keys() == theirs.keys()


@pytest.mark.parametrize("then", ["cut otherwise", "whole"])
def test_what_a_cut_island_has_saved_is_gone_on_with_by_ranks_that_hold_other_parts_or_all(
    gangs: Gangs, tmp_path: Path, capsys: pytest.CaptureFixture[str], then: str
):
    leader = OuterLeader(tmp_path, plan(STEPS), BATCHES, EVERY)
    leader.expected = {"cut"}
    before = Processes(gangs, leader, tmp_path / "before")
    before.begin("cut", "torch", 3, **cut(2, 3, 1, 2))
    leader.wait_for_line(3)
    leader.expected = set(BATCHES)
    first = max(of_island(leader, "cut"), key=lambda rank: len(rank.said(PseudoGradientWritten)))
    leader.wait_for(first, PseudoGradientWritten, 3)
    leader.stop(first)
    before.ended()
    saved = together(ranks_of(leader, "cut"), 12, tmp_path / "saved")
    assert load_state(saved).outer is not None
    leader.forget_ways()
    leader.end("cut")
    if then == "whole":
        inputs = make_inputs(tmp_path / "then") | {"checkpoint": str(saved)}
        Island(leader, "cut", inputs)
    after = Processes(gangs, leader, tmp_path / "after")
    if then != "whole":
        after.begin("cut", "torch", 2, saved, **cut(3, 1, 4))
    whole = Island(leader, "whole", make_inputs(tmp_path / "whole"))
    assert whole.ended().error is None
    leader.wait_for_line(ROUNDS + 1)
    log = capsys.readouterr().out
    wanted = digests(log, "whole")
    assert before.digests("cut").items() <= wanted.items()
    after.ended()
    found = digests(log, "cut") if then == "whole" else after.digests("cut")
    assert list(found) == [3, 4]
    assert found.items() <= wanted.items()
    assert not leader.adrift


def test_a_cut_island_whose_weights_became_no_numbers_goes_on_with_those_of_all(
    gangs: Gangs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    leader = OuterLeader(tmp_path, plan(STEPS), BATCHES, EVERY)
    processes = Processes(gangs, leader, tmp_path)
    processes.begin("cut", "torch", 2, breaks_after=EVERY + 2, **cut(3, 3, 1))
    whole = Island(leader, "whole", make_inputs(tmp_path / "whole"))
    processes.ended()
    assert whole.ended().error is None
    wanted = digests(capsys.readouterr().out, "whole")
    assert processes.digests("cut", 0) == processes.digests("cut", 1) == wanted
    (first,) = [r for r in of_island(leader, "cut") if r.said(PseudoGradientWritten)]
    norms = [told.pseudo_gradient.norm for told in first.said(PseudoGradientWritten)]
    assert [*map(math.isfinite, norms)] == [True, False, True, True]
