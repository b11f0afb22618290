"""A short form of `make test-failures`: a victim, an engine and a phase, chosen in every run.

`test_killed_cycle`, which `make test-all` runs, strikes the same victims at random moments; here
the work is caught in its midst.
"""

import random
from pathlib import Path

import pytest

from jupiterd.cycle.base.work_item import Phase
from tests.support.strikes.strikes import Moment, Victim
from tests.support.strikes.struck_cycle import run_struck_cycle

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(300),
]

PHASES = [phase for phase in Phase if phase is not Phase.GENERATE]
"""The first round generates nothing."""


async def test_a_cycle_that_is_struck_ends_whole(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    victim = chance.choice(list(Victim))
    moments = [Moment(1, chance.choice(PHASES))]
    engine = chance.choice(["torch", "mlx"])
    await run_struck_cycle(tmp_path, engine, victim, moments, chance, proxies="off")
