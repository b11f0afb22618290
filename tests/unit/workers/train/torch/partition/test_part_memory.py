"""A rank that holds its part of a model takes as much memory as is planned, and less than all."""

import pytest

from jupiterd.cycle.training.partition.partition import STAGES, WEIGHTS, Partition
from jupiterd.cycle.training.plan import parse_model
from jupiterd.locations import config_folder
from tests.support.workers.cut.cut_memory import Measured, peak_bytes
from tests.support.workers.cut.torch_ranks import on_ranks

pytestmark = [pytest.mark.net, pytest.mark.long, pytest.mark.timeout(900)]

TOLERANCE = 0.1
SHAPE = parse_model((config_folder() / "models" / "100m.yaml").read_text()).model_copy(
    update={"seq_len": 128}
)


@pytest.mark.parametrize("stage", STAGES)
def test_the_peak_of_each_rank_is_what_was_planned(stage: int):
    measured = Measured(SHAPE, Partition(stage, (3, 1)))
    for rank, peak in enumerate(on_ranks(2, peak_bytes, measured)):
        assert measured.planned(rank).total == pytest.approx(peak, rel=TOLERANCE), rank


@pytest.mark.parametrize("checkpointing", [False, True])
def test_none_of_four_takes_what_one_machine_would(checkpointing: bool):
    (whole,) = on_ranks(1, peak_bytes, Measured(SHAPE, None, checkpointing))
    measured = Measured(SHAPE, Partition(WEIGHTS, (1, 1, 1, 1)), checkpointing)
    peaks = on_ranks(4, peak_bytes, measured)
    assert max(peaks) < 0.7 * whole
    for rank, peak in enumerate(peaks):
        assert measured.planned(rank).total == pytest.approx(peak, rel=TOLERANCE), rank
