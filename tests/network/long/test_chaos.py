"""Strikes without an end: `make chaos STRIKES=50 ENGINE=torch SEED=7 [LORA=1] [SHARD=2]`."""

import os
import random
from pathlib import Path

import pytest

from tests.support.network.blows import Blow
from tests.support.network.struck_islands import (
    MIXED,
    THREE,
    dealt_with_moments,
    run_struck_islands,
)
from tests.support.network.struck_run import run_struck

STRIKES = int(os.environ.get("JUPITER_CHAOS_STRIKES") or 12)
BLOWS = [Blow(name) for name in (os.environ.get("JUPITER_CHAOS_BLOWS") or "").split(",") if name]
"""Such as `lose packets,pull cable`; all kinds where none are named."""

LORA = bool(os.environ.get("JUPITER_CHAOS_LORA"))
"""Whether an adapter is trained beside a model that stays as it is."""

SHARD = os.environ.get("JUPITER_CHAOS_SHARD") or ""
"""The stage in which one gang's model is cut over its ranks; empty: each holds all of it."""

pytestmark = pytest.mark.timeout(600 + 100 * STRIKES)


@pytest.mark.parametrize("engine", ["torch", "mlx"])
async def test_a_training_that_is_struck_again_and_again_ends_like_one_that_is_not(
    tmp_path: Path, packet_filter: None, engine: str, seed: int
) -> None:
    chance = random.Random(seed)
    blows = BLOWS or tuple(Blow)
    await run_struck(tmp_path, engine, STRIKES, chance, blows, lora=LORA, shard=SHARD)


@pytest.mark.parametrize("islands", [MIXED, THREE], ids=["hybrid", "three-islands"])
async def test_islands_that_are_struck_again_and_again_end_like_others(
    tmp_path: Path, packet_filter: None, traffic_shaper: None, islands: str, seed: int
) -> None:
    pytest.importorskip("mlx.core")
    chance = random.Random(seed)
    blows = dealt_with_moments(STRIKES, chance, BLOWS or tuple(Blow))
    await run_struck_islands(tmp_path, islands, blows, chance, lora=LORA)
