"""A cycle that is struck again and again, and must end whole.

Owns the way from three daemons to the last check. Doesn't know which moments a test is about.
"""

import asyncio
import random
import time
from collections.abc import Sequence
from pathlib import Path

from tests.support.daemons.cluster import Cluster, three_daemons
from tests.support.sources.tiny_domain import write_domain
from tests.support.strikes.strikes import Moment, Struck, Victim
from tests.support.strikes.wholeness import assert_whole, left_over

STEPS = 250
"""Two checkpoints, 100 steps apart, before the end; enough to beat the byte model."""

END_TIMEOUT_S = 240.0


async def run_struck_cycle(
    folder: Path,
    engine: str,
    victim: Victim,
    moments: Sequence[Moment],
    chance: random.Random,
    proxies: str = "auto",
) -> None:
    """Run a cycle of as many rounds as the moments tell, strike at each, and check the end."""
    domain = write_domain(folder, steps=STEPS, proxies=proxies)
    rounds = max(moment.round for moment in moments)
    options = ("--domain", domain, "--engine", engine, "--rounds", rounds, "--seed", 7)
    async with three_daemons(folder) as cluster:
        await cluster.meet()
        command = ("cycle", "start", *map(str, options))
        # Beside the first strike, for collecting may be over before the command has returned.
        starting = asyncio.ensure_future(asyncio.to_thread(cluster.ctl, *command))
        struck = Struck(cluster, victim, chance)
        for moment in moments:
            began_s = time.monotonic()
            await struck.at(moment)
            later_s = time.monotonic() - began_s
            print(f"{later_s:5.1f} s later: {victim} killed in {moment} ({engine})")
        done = await starting  # a leader that was killed may owe the answer; the cycle tells all
        assert done.returncode == 0 or victim is Victim.LEADER, done.stderr
        await struck.until_over(moments[-1])
        await struck.bring_back()
        await _assert_ends_whole(cluster, engine, folder)
    assert left_over(folder, []) == []


async def _assert_ends_whole(cluster: Cluster, engine: str, folder: Path) -> None:
    ended = await cluster.until(
        lambda cycle: cycle["state"] not in ("running", "waiting"), "the end", END_TIMEOUT_S
    )
    assert ended["state"] == "finished", cluster.failure_text(str(ended["failure"]))
    await cluster.meet()
    (cycle,) = cluster[0].state().cycles.values()
    engines = {attempt.engine.partition("/")[0] for attempt in cycle.attempts_opened.values()}
    assert engines == {engine}
    await assert_whole(cluster, cycle, STEPS, folder)
    assert left_over(folder, list(cluster.daemons)) == []
