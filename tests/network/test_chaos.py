"""The short form of `make chaos`: a few strikes, chosen anew in every run, on a gang or islands."""

import random
from pathlib import Path

import pytest

from tests.network.blows import Blow
from tests.network.struck_islands import LEARNED_BPB, MIXED, Moment, run_struck_islands
from tests.network.struck_run import run_struck

pytestmark = pytest.mark.timeout(400)

STRIKES = 4
AT_ONCE = (Blow.KILL_WORKER, Blow.FREEZE_WORKER, Blow.KILL_FOLLOWER, Blow.CUT_POWER)
"""Nobody needs to wait for silence before these are noticed."""


async def test_a_training_that_is_struck_ends_like_one_that_is_not(
    tmp_path: Path, packet_filter: None, seed: int
) -> None:
    await run_struck(tmp_path, "torch", STRIKES, random.Random(seed))


async def test_islands_whose_leader_dies_in_the_midst_of_a_sync_end_with_equal_weights(
    tmp_path: Path, traffic_shaper: None, seed: int
) -> None:
    pytest.importorskip("mlx.core")
    chance = random.Random(seed)
    blows = [
        (Blow.KILL_LEADER, Moment.FIRST_WAY_IN),
        (chance.choice(AT_ONCE), Moment.STEP_TAKEN),
    ]
    await run_struck_islands(tmp_path, MIXED, blows, chance, LEARNED_BPB)
