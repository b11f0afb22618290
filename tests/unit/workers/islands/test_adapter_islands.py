"""Islands of unlike engines that train one adapter beside one frozen model."""

from pathlib import Path

import pytest

from jupiterd.cycle.training.adapters.adapter import parse_adapter
from jupiterd.cycle.training.plan import TrainPlan
from jupiterd.protocol.frames import PseudoGradientWritten
from jupiterd.workers.islands.outer_step import OuterSettings
from jupiterd.workers.train.checkpoints.checkpoint import write_model
from tests.support.workers.gangs import Gangs
from tests.support.workers.outer_leader import OuterLeader
from tests.support.workers.tiny_engine import tiny_engine
from tests.support.workers.tiny_run import make_inputs
from tests.unit.workers.islands.test_islands_of_both_engines import (
    BATCH,
    TOLERANCE,
    Processes,
    losses,
    plan,
)

pytestmark = [pytest.mark.net, pytest.mark.timeout(150), pytest.mark.xdist_group("gangs")]

STEPS = 12


def adapting(steps: int) -> TrainPlan:
    whole = plan(steps)
    options = whole.options.model_copy(update={"adapter": parse_adapter("rank=4")})
    return whole.model_copy(update={"options": options, "learning_rate": 1e-2})


@pytest.mark.mlx
def test_an_mlx_and_a_torch_island_average_their_adapters_to_the_last_bit(
    gangs: Gangs, tmp_path: Path
) -> None:
    pytest.importorskip("mlx.core")
    both = {"m": BATCH, "t": BATCH}
    leader = OuterLeader(
        tmp_path, adapting(STEPS), both, 2, OuterSettings(1.0, 0.0), kind="fp32", same_batches=True
    )
    base, drawn = tmp_path / "base", tiny_engine(plan(STEPS))
    tokenizer = Path(make_inputs(tmp_path / "other")["tokenizer"])
    write_model(base, drawn.config, drawn.weights(), tokenizer)
    processes = Processes(gangs, leader, tmp_path, weights=base)
    processes.begin("m", "mlx")
    processes.begin("t", "torch")
    processes.ended()
    assert processes.digests("m") == processes.digests("t")
    assert len(processes.digests("m")) == STEPS // 2 + 1
    one, other = (losses(leader.ranks, name) for name in both)
    assert max(abs(a - b) for a, b in zip(one, other, strict=True)) < TOLERANCE
    assert one[-1] < one[0]
    whole = sum(values.nbytes for values in drawn.weights().values())
    assert all(
        sent_bytes(each) < whole / 4
        for rank in leader.ranks
        for each in rank.said(PseudoGradientWritten)
    )


def sent_bytes(written: PseudoGradientWritten) -> int:
    folder = Path(written.path)
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
