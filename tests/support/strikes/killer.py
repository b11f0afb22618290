"""Killing whatever runs a cycle, at random: a worker, a daemon, a machine, the leader.

Owns what is killed, when it comes back, and who works meanwhile. Doesn't know how many strikes
there are, or what must hold afterwards.
"""

import asyncio
import contextlib
import json
import os
import random
import re
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cycle.base.work_item import Phase
from jupiterd.ids import CycleId
from jupiterd.processes.orphans import SUFFIX
from tests.support.daemons.cluster import Cluster, Daemon, is_running
from tests.support.strikes.strikes import Moment

LOOK_S = 0.02
AWAY_S = (0.0, 5.0)
"""So long a daemon that was killed stays away."""

_ORDER = re.compile(rf"[0-9a-f]{{8}}-r(\d+)-({'|'.join(Phase)})-(.+){re.escape(SUFFIX)}")


class Blow(StrEnum):
    """What is killed."""

    WORKER = "a worker"
    DAEMON = "a daemon"
    """Its workers are on their own."""
    MACHINE = "a machine"
    """A daemon with its workers."""
    LEADER = "the leader"
    """With its workers, too."""
    ALL = "everything"
    """All daemons with their workers at once."""


@dataclass(frozen=True)
class Worker:
    """A process that does work of a phase, maybe of the next round's."""

    daemon: Daemon
    pid: int
    moment: Moment
    item: str
    """Of the phase, and the task."""


class Killer:
    """Kills, and starts again what it has killed."""

    def __init__(self, cluster: Cluster, chance: random.Random) -> None:
        self._cluster = cluster
        self._chance = chance
        self._away: dict[str, asyncio.Task[None]] = {}

    @property
    def up(self) -> list[Daemon]:
        """The daemons that run."""
        return [each for each in self._cluster.daemons if each.name not in self._away]

    def workers(self) -> list[Worker]:
        """Return the processes that work on a round now."""
        return [worker for daemon in self._cluster.daemons for worker in _workers_of(daemon)]

    def recorded(self, cycle: CycleId) -> CycleState | None:
        """Return a cycle as a daemon has it on its disk, one that runs if any does."""
        return (self.up or self._cluster.daemons)[0].state().cycles.get(cycle)

    async def strike(self, blow: Blow) -> str:
        """Kill something, which comes back after a while; return what it was, for people.

        Where no worker runs, a machine is struck in its place.
        """
        if blow is Blow.WORKER and (working := self.workers()):
            chosen = self._chance.choice(working)
            _kill([chosen.pid])
            return f"{chosen.item} of {chosen.daemon.name}"
        if not self.up:
            await asyncio.wait(self._away.values(), return_when=asyncio.FIRST_COMPLETED)
        if blow is Blow.ALL:
            return ", ".join([self._end(each, with_workers=True) for each in self.up])
        leader = await self._leader() if blow is Blow.LEADER else None
        struck = leader or self._chance.choice(self.up)
        told = self._end(struck, with_workers=blow is not Blow.DAEMON)
        return f"the leader, {told}" if leader else told

    def _end(self, struck: Daemon, *, with_workers: bool) -> str:
        workers = struck.workers() if with_workers else []
        struck.kill()
        _kill(workers)
        away_s = self._chance.uniform(*AWAY_S)
        back = asyncio.get_running_loop().create_task(self._bring_back(struck, away_s))
        self._away[struck.name] = back
        theirs = f" and its {len(workers)} workers" if with_workers else ""
        return f"{struck.name}{theirs} for {away_s:.1f} s"

    async def bring_all_back(self) -> None:
        """Wait until all run again, and are together."""
        await asyncio.gather(*self._away.values())
        await self._cluster.meet()

    def rest(self) -> None:
        """Start nothing again any more."""
        for back in self._away.values():
            back.cancel()

    async def _bring_back(self, daemon: Daemon, after_s: float) -> None:
        await asyncio.sleep(after_s)
        daemon.start()
        del self._away[daemon.name]

    async def _leader(self) -> Daemon | None:
        """Return who leads, as far as anybody who runs can tell."""
        for daemon in self.up:
            view = await daemon.ask()
            if view is not None and view["cluster"]["leader"]:
                named = self._cluster.by_id(view["cluster"]["leader"], view)
                return named if named in self.up else None
        return None


def _workers_of(daemon: Daemon) -> Iterator[Worker]:
    """Yield a daemon's workers, by the files in which it remembers them."""
    for path in (daemon.state_dir / "logs").glob(f"*{SUFFIX}"):
        found = _ORDER.fullmatch(path.name)
        with contextlib.suppress(OSError, ValueError):  # it has just begun, or just ended
            pid = json.loads(path.read_text())["pid"]
            if found is not None and is_running(pid):
                yield Worker(daemon, pid, Moment(int(found[1]), Phase(found[2])), found[3])


def _kill(pids: Sequence[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
