"""The short form of `make chaos`: a few strikes, chosen anew in every run, with torch alone."""

import random
from pathlib import Path

import pytest

from tests.network.struck_run import run_struck

pytestmark = pytest.mark.timeout(300)

STRIKES = 4


async def test_a_training_that_is_struck_ends_like_one_that_is_not(
    tmp_path: Path, packet_filter: None, seed: int
) -> None:
    await run_struck(tmp_path, "torch", STRIKES, random.Random(seed))
