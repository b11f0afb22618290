"""kill -9 of a worker, of a follower and of the leader in the middle of each phase, both engines.

One cycle for each engine and victim: it is struck once in every phase, and each killed daemon comes
back before the next strike. `make test-failures` runs it; `make test-all` a short form.
"""

import random
from pathlib import Path

import pytest

from jupiterd.cycle.base.work_item import Phase
from tests.support.strikes.strikes import Moment, Victim
from tests.support.strikes.struck_cycle import run_struck_cycle

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.timeout(600)]

MOMENTS = (
    *(Moment(1, phase) for phase in Phase if phase is not Phase.GENERATE),
    Moment(2, Phase.GENERATE),
    Moment(2, Phase.FILTER),
    Moment(2, Phase.TRAIN),
)
"""Round 1 generates nothing: that phase, and what then differs, is struck in round 2."""


@pytest.mark.parametrize("engine", ["torch", "mlx"])
@pytest.mark.parametrize("victim", list(Victim))
async def test_a_cycle_that_is_struck_in_every_phase_ends_whole(
    tmp_path: Path, engine: str, victim: Victim, seed: int
) -> None:
    await run_struck_cycle(tmp_path, engine, victim, MOMENTS, random.Random(seed))
