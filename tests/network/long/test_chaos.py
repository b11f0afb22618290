"""Strikes without an end in sight: `make chaos STRIKES=50 ENGINE=torch SEED=7`."""

import os
import random
from pathlib import Path

import pytest

from tests.network.blows import Blow
from tests.network.struck_run import run_struck

STRIKES = int(os.environ.get("JUPITER_CHAOS_STRIKES") or 12)
BLOWS = [Blow(name) for name in (os.environ.get("JUPITER_CHAOS_BLOWS") or "").split(",") if name]
"""Such as `lose packets,pull cable`; all kinds where none are named."""

pytestmark = pytest.mark.timeout(300 + 40 * STRIKES)


@pytest.mark.parametrize("engine", ["torch", "mlx"])
async def test_a_training_that_is_struck_again_and_again_ends_like_one_that_is_not(
    tmp_path: Path, packet_filter: None, engine: str, seed: int
) -> None:
    await run_struck(tmp_path, engine, STRIKES, random.Random(seed), BLOWS or tuple(Blow))
