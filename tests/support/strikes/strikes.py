"""Killing one thing in the middle of one phase, and waiting until the phase is done nevertheless.

Owns what "the middle" is: the phase's workers have been caught at their work and hold still, so
that whatever is killed, the work isn't done. Training is struck as it runs: it takes long enough,
and a rank that held still would be ended by its node. Doesn't know what must hold at the end of the
cycle.
"""

import asyncio
import contextlib
import json
import os
import random
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.phases.evaluate import EVALUATION_PIECES
from jupiterd.cycle.phases.proxies import PROXIES
from jupiterd.processes.orphans import SUFFIX
from tests.support.daemons.cluster import Cluster, Daemon, all_gone, is_running

CATCH_TIMEOUT_S = 90.0
LOOK_S = 0.005
GONE_TIMEOUT_S = 15.0
DONE_TIMEOUT_S = 120.0

LONGEST_WAIT_S = {
    Phase.COLLECT: 0.05,
    Phase.FILTER: 0.05,
    Phase.PACK: 0.05,
    Phase.TRAIN: 1.0,
    Phase.EVALUATE: 1.0,
    Phase.GENERATE: 0.3,
    Phase.GATE: 0.0,
}
"""How deep into its work a worker may be caught: less than half of what it takes."""


class Victim(StrEnum):
    """What is killed."""

    WORKER = "worker"
    FOLLOWER = "follower"
    LEADER = "leader"


@dataclass(frozen=True)
class Moment:
    """A phase of a round."""

    round: int
    phase: Phase

    def __str__(self) -> str:
        return f"r{self.round}/{self.phase}"

    def is_over(self, cycle: CycleState) -> bool:
        """Say whether everything the phase makes is recorded."""
        if self.phase is Phase.TRAIN:
            last = cycle.last_checkpoint(self.round)
            return last is not None and last.is_final
        if self.phase is Phase.GATE:  # of one item or many: it depends on the verdict
            return cycle.rounds_committed >= self.round
        made = [
            f
            for f in cycle.completed.values()
            if (f.round, f.phase) == (self.round, self.phase) and f"/{PROXIES}/" not in f.item
        ]
        return len(made) == (EVALUATION_PIECES if self.phase is Phase.EVALUATE else 1)


@dataclass(frozen=True)
class Caught:
    """A worker that was stopped at its work."""

    daemon: Daemon
    pid: int


class Struck:
    """What was killed, where a daemon was: it comes back when the next phase has begun."""

    def __init__(self, cluster: Cluster, victim: Victim, chance: random.Random) -> None:
        self._cluster = cluster
        self._victim = victim
        self._chance = chance
        self._killed: Daemon | None = None

    async def at(self, moment: Moment) -> None:
        """Kill the victim in the middle of the phase; what was killed before comes back first."""
        if moment.phase is Phase.TRAIN:
            await self._cluster.recorded(
                lambda cycle: cycle.last_checkpoint(moment.round) is not None,
                f"a checkpoint of round {moment.round}",
                CATCH_TIMEOUT_S,
                self._survivor,
            )
            await self.bring_back()
        caught = await _caught(self._cluster, moment, self._chance)
        try:
            await self.bring_back()
            self._killed, pids = await _kill(self._cluster, self._victim, caught)
        finally:
            _let_go_on(caught)
        told = self._cluster.failure_text(f"{moment}: a worker goes on")
        assert await all_gone(pids, GONE_TIMEOUT_S), told

    async def until_over(self, moment: Moment) -> None:
        """Wait until those who are left have done all of the phase."""
        await self._cluster.recorded(moment.is_over, str(moment), DONE_TIMEOUT_S, self._survivor)

    @property
    def _survivor(self) -> Daemon:
        return next(one for one in self._cluster.daemons if one is not self._killed)

    async def bring_back(self) -> None:
        """Start the daemon that was killed, if any, and wait until all are together."""
        if self._killed is not None:
            self._killed.start()
            self._killed = None
        await self._cluster.meet()


async def _caught(cluster: Cluster, moment: Moment, chance: random.Random) -> list[Caught]:
    """Wait for the workers of the phase, let them come into their work, and stop them there."""
    deadline_s = time.monotonic() + CATCH_TIMEOUT_S
    stopped: list[Caught] = []
    while not stopped:  # those of a short piece of work may end by themselves meanwhile
        while not list(_workers(cluster, moment)):
            assert time.monotonic() < deadline_s, cluster.failure_text(f"nobody works on {moment}")
            await asyncio.sleep(LOOK_S)
        await asyncio.sleep(chance.uniform(0.0, LONGEST_WAIT_S[moment.phase]))
        stopped = [caught for caught in _workers(cluster, moment) if is_running(caught.pid)]
    for caught in stopped if moment.phase is not Phase.TRAIN else ():
        with contextlib.suppress(ProcessLookupError):  # it has just ended by itself
            os.kill(caught.pid, signal.SIGSTOP)
    return stopped


def _let_go_on(caught: Sequence[Caught]) -> None:
    """Wake whoever was to hold still and wasn't killed."""
    for one in caught:
        with contextlib.suppress(ProcessLookupError):
            os.kill(one.pid, signal.SIGCONT)


def _workers(cluster: Cluster, moment: Moment) -> Iterator[Caught]:
    """Yield the workers of a phase, by the files in which the daemons remember theirs."""
    for daemon in cluster.daemons:
        for path in (daemon.state_dir / "logs").glob(f"*-r{moment.round}-{moment.phase}-*{SUFFIX}"):
            if path.stem.endswith("-store"):
                continue
            with contextlib.suppress(OSError, ValueError):  # it has just begun, or just ended
                yield Caught(daemon, json.loads(path.read_text())["pid"])


async def _kill(
    cluster: Cluster, victim: Victim, caught: Sequence[Caught]
) -> tuple[Daemon | None, list[int]]:
    """Kill; return the daemon that was, if any, and every process that must end with the victim."""
    if victim is Victim.WORKER:
        os.kill(caught[-1].pid, signal.SIGKILL)
        return None, [caught[-1].pid]
    leader = await _leader(cluster)
    killed = leader if victim is Victim.LEADER else _follower(cluster.daemons, leader, caught)
    workers = killed.workers()
    killed.kill()
    return killed, [killed.pid, *workers]


async def _leader(cluster: Cluster) -> Daemon:
    view = await cluster[0].ask()
    assert view is not None, cluster.failure_text("the first daemon doesn't answer")
    return cluster.by_id(view["cluster"]["leader"], view)


def _follower(daemons: Sequence[Daemon], leader: Daemon, caught: Sequence[Caught]) -> Daemon:
    """Return the follower whose death hurts most: one that works."""
    followers = [daemon for daemon in daemons if daemon is not leader]
    return next((one.daemon for one in caught if one.daemon in followers), followers[0])
