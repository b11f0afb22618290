"""A cycle whose rounds are trained by two islands, one on MLX and one on torch."""

import asyncio
import subprocess
from pathlib import Path

import pytest

from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.island_runs import Cycles, islands_in
from jupiterd.ids import CycleId
from tests.e2e.islands.test_islands import assert_equal_weights
from tests.support.daemons.cluster import NAMES, Cluster, Daemon, running
from tests.support.daemons.surroundings import own_network
from tests.support.sources.tiny_domain import write_domain
from tests.support.strikes.wholeness import assert_whole, left_over

pytest.importorskip("mlx.core")

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.timeout(300),
]

STEPS, EVERY = 32, 8


def cycle_of(daemon: Daemon) -> CycleState | None:
    cycles = daemon.state().cycles.values()
    return next((cycle for cycle in cycles if cycle.started is not None), None)


def id_of(cycles: Cycles) -> CycleId:
    return next(name for name, cycle in cycles.items() if cycle.started is not None)


def outer_steps(daemon: Daemon, number: int) -> int:
    cycle = cycle_of(daemon)
    return 0 if cycle is None else len(cycle.outer_branch(number))


async def test_two_rounds_by_islands_outlive_the_death_of_their_leader(tmp_path: Path) -> None:
    domain = write_domain(tmp_path, STEPS)
    with own_network() as prefix:
        daemons = [Daemon(tmp_path, name, prefix) for name in NAMES[:2]]
        async with running(daemons) as cluster:
            (view, *_) = await cluster.meet()
            leader = cluster.by_id(view["cluster"]["leader"], view)
            survivor = next(daemon for daemon in daemons if daemon is not leader)
            follower = asyncio.ensure_future(
                asyncio.to_thread(start, cluster, domain, survivor, leader)
            )
            async with asyncio.timeout(200):
                while outer_steps(survivor, 2) < 2:  # noqa: ASYNC110 - a file tells nobody
                    await asyncio.sleep(0.2)
            leader.kill()
            ended = await follower
            assert ended.returncode == 0, cluster.failure_text(ended.stdout + ended.stderr)
            audit = cluster.ctl("data", "audit", daemon=survivor)
            assert audit.returncode == 0, audit.stdout
            cycle = cycle_of(survivor)
            assert cycle is not None
            await assert_whole(Cluster([survivor]), cycle, STEPS, tmp_path)
        assert_islands_of_their_own(survivor)
        assert_equal_weights(survivor, leader)
        assert left_over(tmp_path, []) == []


def start(
    cluster: Cluster, domain: Path, survivor: Daemon, leader: Daemon
) -> subprocess.CompletedProcess[str]:
    return cluster.ctl(
        *("cycle", "start", "--domain", str(domain), "--rounds", "2", "--size", "1m"),
        *("--islands", f"torch:{survivor.name} mlx:{leader.name}", "--sync-every", str(EVERY)),
        *("--wait", "--timeout", "250"),
        daemon=survivor,
        timeout_s=270,
    )


def assert_islands_of_their_own(daemon: Daemon) -> None:
    """Each round had two islands, which are over, and began with the model before it."""
    cycles = daemon.state().cycles
    cycle = cycles[id_of(cycles)]
    for number in (1, 2):
        islands = islands_in(cycles, id_of(cycles), number)
        assert len(islands) == 2
        assert all(state.has_nothing_to_do for state, _ in islands)
        line = [*cycle.outer_branch(number).values()]
        assert (line[-1].first_step, line[-1].steps) == (STEPS, 0)
        assert line[0].start == cycle.start_of(number)
    assert len(cycles) == 5
