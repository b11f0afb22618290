"""The short form of `make chaos`: strikes chosen anew in every run, on a gang or islands."""

import random
from pathlib import Path

import pytest

from tests.support.network.blows import Blow
from tests.support.network.struck_islands import LEARNED_BPB, MIXED, Moment, run_struck_islands
from tests.support.network.struck_run import run_struck

pytestmark = pytest.mark.timeout(400)

STRIKES = 2


async def test_a_training_that_is_struck_ends_like_one_that_is_not(
    tmp_path: Path, packet_filter: None, seed: int
) -> None:
    await run_struck(tmp_path, "torch", STRIKES, random.Random(seed))


async def test_islands_whose_leader_dies_in_the_midst_of_a_sync_end_with_equal_weights(
    tmp_path: Path, traffic_shaper: None, seed: int
) -> None:
    pytest.importorskip("mlx.core")
    blows = [(Blow.KILL_LEADER, Moment.FIRST_WAY_IN)]
    await run_struck_islands(tmp_path, MIXED, blows, random.Random(seed), LEARNED_BPB)
