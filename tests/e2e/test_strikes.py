"""The short form of `make test-failures`: one engine and two phases, chosen anew in every run."""

import random
from pathlib import Path

import pytest

from jupiterd.cycle.work import Phase
from tests.e2e.strikes import Moment, Victim
from tests.e2e.struck_cycle import run_struck_cycle

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.xdist_group("e2e"),
    pytest.mark.timeout(300),
]

EARLY = (Phase.COLLECT, Phase.FILTER, Phase.PACK)
LATE = (Phase.TRAIN, Phase.EVALUATE, Phase.GATE)


@pytest.mark.parametrize("victim", list(Victim))
async def test_a_cycle_that_is_struck_twice_ends_whole(
    tmp_path: Path, victim: Victim, seed: int
) -> None:
    chance = random.Random(seed)
    moments = [Moment(1, chance.choice(EARLY)), Moment(1, chance.choice(LATE))]
    engine = chance.choice(["torch", "mlx"])
    await run_struck_cycle(tmp_path, engine, victim, moments, chance, proxies="off")
