"""Ranks of a ring as daemons order them, which hold parts of a model: they train as one does."""

from pathlib import Path

import pytest

from tests.support.workers.mlx_runs import run_to_end
from tests.support.workers.tiny_run import make_inputs, tiny_shape, train_params
from tests.unit.workers.train.mlx.test_mlx_options import plan
from tests.unit.workers.train.test_mlx_train import frames, losses, ring_of_two, said

pytest.importorskip("mlx.core")
pytestmark = [
    pytest.mark.mlx,
    pytest.mark.net,
    pytest.mark.full,
    pytest.mark.timeout(120),
    pytest.mark.xdist_group("mlx"),
]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, fork_server: None) -> Path:
    folder = tmp_path_factory.mktemp("alone")
    params = train_params(tiny_shape(), plan(), engine="mlx")
    run = {"name": "whole", "params": params, "inputs": make_inputs(folder)}
    run_to_end([run | {"folder": str(folder)}], folder, "alone")
    return folder


@pytest.mark.parametrize("stage", [1, 3])
def test_a_ring_of_parts_trains_as_one_rank_does(alone: Path, tmp_path: Path, stage: int):
    cut = {"partition": {"stage": stage, "parts": [2, 1]}, "micro_batch_sequences": 2}
    with ring_of_two(plan(), make_inputs(tmp_path), tmp_path, **cut) as ranks:
        for rank, process in enumerate(ranks):
            assert process.ended() == 0, (tmp_path / f"rank{rank}.log").read_text()
    first, second = said(tmp_path, "0"), said(tmp_path, "1")
    assert "error" not in first, first["error"]
    assert losses(first) == losses(second)
    assert losses(first) == pytest.approx(losses(said(alone, "whole")), abs=1e-4)
    assert first["summary"]["engine"] == "mlx/ring"
    for told in (first, second):
        assert frames(told, "CheckpointWritten"), "each writes its part"


def test_a_rank_that_is_killed_ends_the_other_in_the_middle_of_a_pass(
    fork_server: None, tmp_path: Path
):
    endless = plan().model_copy(update={"steps": 100_000})
    cut = {"partition": {"stage": 3, "parts": [1, 1]}, "micro_batch_sequences": 2}
    with ring_of_two(endless, make_inputs(tmp_path), tmp_path, **cut) as (survivor, victim):
        while survivor.said.readline().partition(" ")[0] != "3":
            assert survivor.runs(), (tmp_path / "rank0.log").read_text()
        victim.kill()
        assert survivor.ended() == 0
    assert "rank 0 lost its ring" in said(tmp_path, "0")["error"]
