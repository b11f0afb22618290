"""Cycles in which workers, daemons and leaders are killed at random come to the same in the end.

In each phase: collecting, generating, filtering, packing, training, evaluating with its small
students, and the gate. `make chaos-cycle STRIKES=100 ROUNDS=2 SEED=7` is the long form.
"""

import os
import random
import time
from collections import Counter
from pathlib import Path

import pytest

from jupiterd.cluster.ledger.cycle_state import CycleState
from tests.support.daemons.cluster import NAMES, Cluster, Daemon, running
from tests.support.daemons.surroundings import own_network
from tests.support.sources.tiny_domain import write_domain
from tests.support.sources.writing_server import writing_server
from tests.support.strikes.killed_cycle import KilledCycle, Struck, dealt, shares, start_command
from tests.support.strikes.same_outcome import assert_as_calm, assert_is_whole, told
from tests.support.strikes.strikes import Moment
from tests.support.strikes.wholeness import left_over

STRIKES = int(os.environ.get("JUPITER_CYCLE_STRIKES") or 0)
ROUNDS = int(os.environ.get("JUPITER_CYCLE_ROUNDS") or 1)
"""Of each cycle; in the second one a student may write, too."""

SHORT_STRIKES = 3
SHORT_STEPS = 120
"""Enough to be struck in: no small students are trained then."""

STEPS = 250
"""Enough to beat the byte model, so that small students are trained for the gate, too."""

SAMPLES = 480
"""Of five items."""

SEED = 7

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.timeout(400 + 100 * STRIKES * ROUNDS),
]


@pytest.mark.skipif(STRIKES > 0, reason="the long form does it, too")
async def test_a_cycle_under_random_kills_ends_whole(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    domain = write_domain(tmp_path, SHORT_STEPS, samples=SAMPLES)
    with own_network() as prefix, writing_server(prefix) as url:
        async with running([Daemon(tmp_path, name, prefix) for name in NAMES]) as cluster:
            await cluster.meet()
            strikes = dealt(shares(SHORT_STRIKES, chance), chance)
            command = start_command(domain, url, SEED)
            killed = KilledCycle(cluster, command, chance)
            cycle = await killed.run(strikes)
            print(killed.struck)
            await assert_is_whole(cluster, cycle, SHORT_STEPS, tmp_path)
    assert left_over(tmp_path, []) == []


@pytest.mark.skipif(STRIKES == 0, reason="make chaos-cycle runs it")
async def test_cycles_under_random_kills_come_to_the_same(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    domain = write_domain(tmp_path, STEPS, proxies="auto", samples=SAMPLES)
    with own_network() as prefix, writing_server(prefix) as url:
        command = start_command(domain, url, SEED, ROUNDS)
        async with running([Daemon(tmp_path, name, prefix) for name in NAMES]) as cluster:
            calm, _ = await _cycle(cluster, command, Counter(), chance, tmp_path)
            left, all_struck = shares(STRIKES, chance, ROUNDS), Struck()
            while left:
                cycle, struck = await _cycle(cluster, command, left, chance, tmp_path)
                assert_as_calm(cluster, cycle, calm)
                left -= struck.moments  # what has had more than its share is no debt
                all_struck.add(struck)
                print(all_struck, flush=True)
    assert left_over(tmp_path, []) == []


async def _cycle(
    cluster: Cluster,
    command: list[str],
    left: Counter[Moment],
    chance: random.Random,
    folder: Path,
) -> tuple[CycleState, Struck]:
    """Run a cycle under some of the strikes that are left, and check it by itself."""
    await cluster.meet()
    began_s = time.monotonic()
    killed = KilledCycle(cluster, command, chance)
    cycle = await killed.run(dealt(left, chance))
    elapsed_s = time.monotonic() - began_s
    await assert_is_whole(cluster, cycle, STEPS, folder)
    count = killed.struck.moments.total()
    print(f"{told(cluster, cycle)}; {count} strikes in {elapsed_s:.0f} s", flush=True)
    return cycle, killed.struck
