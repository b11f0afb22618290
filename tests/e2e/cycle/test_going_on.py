"""A cycle that goes on after it failed, and beyond its end; nothing is done again for it."""

import asyncio
import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cycle.base.work_item import Phase
from tests.support.daemons.cluster import NAMES, Cluster, Daemon, running
from tests.support.daemons.surroundings import own_network
from tests.support.sources.tiny_domain import write_domain
from tests.support.strikes.killer import LOOK_S, Killer

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.timeout(240)]

FAILS_WITHIN_S = 120.0


async def test_a_cycle_whose_evaluation_failed_is_judged_and_goes_round_again(
    tmp_path: Path,
) -> None:
    domain = str(write_domain(tmp_path, steps=20))
    with own_network() as prefix:
        async with running([Daemon(tmp_path, "alone", prefix)]) as cluster:
            await cluster.meet()
            started = cluster.ctl("cycle", "start", "--domain", domain, "--seed", "7")
            assert started.returncode == 0, started.stderr
            before = await _fails_in_evaluation(cluster)
            await _has_an_alarm_until_it_is_dismissed(cluster)

            resumed = cluster.ctl("cycle", "resume", "--wait", "--timeout", "90s")
            assert resumed.returncode == 0, cluster.failure_text(resumed.stdout + resumed.stderr)
            after = _cycle(cluster)
            assert list(after.verdicts) == [1]
            assert after.attempts_opened == before.attempts_opened, "it was trained again"
            assert before.recorded.items() <= after.recorded.items(), "work was done again"
            assert after.last_checkpoint(1) == before.last_checkpoint(1)

            extended = cluster.ctl("cycle", "extend", "--wait", "--timeout", "120s")
            assert extended.returncode == 0, cluster.failure_text(extended.stdout + extended.stderr)
            longer = _cycle(cluster)
            assert list(longer.verdicts) == [1, 2]
            assert longer.verdicts[1] == after.verdicts[1]
            _names_any_of_its_rounds(cluster)


@pytest.mark.long
async def test_a_cycle_of_islands_whose_evaluation_failed_is_judged_and_not_trained_again(
    tmp_path: Path,
) -> None:
    domain = str(write_domain(tmp_path, steps=16))
    with own_network() as prefix:
        daemons = [Daemon(tmp_path, name, prefix) for name in NAMES[:2]]
        async with running(daemons) as cluster:
            await cluster.meet()
            islands = ("--islands", " ".join(f"torch:{each.name}" for each in daemons))
            settings = ("--domain", domain, "--seed", "7", *islands, "--sync-every", "8")
            started = cluster.ctl("cycle", "start", *settings)
            assert started.returncode == 0, started.stderr
            before = await _fails_in_evaluation(cluster)
            line, gangs = before.outer_branch(1), _gangs(cluster)
            assert len(line) >= 2, "it wasn't trained by islands"

            resumed = cluster.ctl("cycle", "resume", "--wait", "--timeout", "90s")
            assert resumed.returncode == 0, cluster.failure_text(resumed.stdout + resumed.stderr)
            after = _cycle(cluster)
            assert list(after.verdicts) == [1]
            assert after.outer_branch(1) == line, "it was trained again"
            assert _gangs(cluster) == gangs, "another gang was formed"
            assert before.recorded.items() <= after.recorded.items(), "work was done again"


def _gangs(cluster: Cluster) -> dict[str, int]:
    """Return how many gangs each of the cycle's islands has had."""
    cycles = cluster[0].state().cycles
    return {name: len(each.attempts_opened) for name, each in cycles.items()}


async def _fails_in_evaluation(cluster: Cluster) -> CycleState:
    """Kill whatever evaluates until the cycle gives up; return what is recorded then."""
    killer = Killer(cluster, random.Random(1))
    until_s = time.monotonic() + FAILS_WITHIN_S
    while _cycle(cluster).failed is None:
        assert time.monotonic() < until_s, cluster.failure_text("it didn't fail")
        for worker in killer.workers():
            if worker.moment.phase == Phase.EVALUATE:
                with suppress(ProcessLookupError):
                    os.kill(worker.pid, signal.SIGKILL)
        await asyncio.sleep(LOOK_S)
    failed = _cycle(cluster)
    last = failed.last_checkpoint(1)
    assert last is not None
    assert last.is_final
    assert failed.verdicts == {}
    return failed


async def _has_an_alarm_until_it_is_dismissed(cluster: Cluster) -> None:
    assert await _alarms(cluster, ["run-failed"])
    shown = cluster.ctl("cycle", "status", "tiny")
    assert "failed: " in shown.stdout, shown.stderr
    done = cluster.ctl("cycle", "dismiss")
    assert done.stdout.startswith("no alarm about tiny ("), done.stderr
    assert await _alarms(cluster, [])


async def _alarms(cluster: Cluster, wanted: list[str]) -> bool:
    """Say whether these alarms come to be the only ones."""
    for _ in range(100):
        status = await cluster[0].ask() or {}
        codes = [line["code"] for line in status.get("health", ()) if line["severity"] == "error"]
        if codes == wanted:
            return True
        await asyncio.sleep(0.1)
    return False


def _names_any_of_its_rounds(cluster: Cluster) -> None:
    (own,) = cluster[0].state().cycles
    for given in (("tiny", "1"), (own[:8], "1"), ("1",)):
        told = cluster.ctl("cycle", "explain", *given)
        assert "this was look 1 at the held-out text" in told.stdout, told.stderr
    told = cluster.ctl("cycle", "explain", own[:8])
    assert "this was look 2 at the held-out text" in told.stdout, told.stderr


def _cycle(cluster: Cluster) -> CycleState:
    cycles = cluster[0].state().cycles
    return next((each for each in cycles.values() if each.started is not None), CycleState())
