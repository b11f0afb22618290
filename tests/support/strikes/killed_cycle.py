"""A cycle in which something is killed again and again, at random moments of every phase.

Owns how the strikes are shared out among the phases, and the way through one cycle. Doesn't know
what must hold at its end (`same_outcome`).
"""

import asyncio
import random
import re
import time
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.phases.proxies import PROXIES
from jupiterd.daemon.leader.work_item import MAX_FAILURES
from jupiterd.ids import CycleId
from tests.support.daemons.cluster import Cluster
from tests.support.strikes.killer import LOOK_S, Blow, Killer
from tests.support.strikes.strikes import Moment

START_TIMEOUT_S = 120.0
PHASE_TIMEOUT_S = 1200.0
"""Several phases may lie in between, whose own strikes were missed or are done."""

END_TIMEOUT_S = 1200.0
ENDED_LOOK_S = 0.5

MOST_OF_A_PHASE = 3
"""Strikes of one cycle."""

AMID_WORK = 0.7
"""How often a strike waits until something works; the others fall wherever they fall."""

WORK_TIMEOUT_S = 20.0

LASTS_S: Mapping[Phase, float] = {
    Phase.COLLECT: 0.4,
    Phase.GENERATE: 3.0,
    Phase.FILTER: 0.5,
    Phase.PACK: 0.3,
    Phase.TRAIN: 6.0,
    Phase.EVALUATE: 10.0,
    Phase.GATE: 10.0,
}
"""Phase -> a time within which a strike falls into it, mostly, from any moment of it on."""

STUDENT = re.compile(rf"{PROXIES}-.*-train-proxy")
"""What the worker of a small student's training is called."""


@dataclass(frozen=True)
class Strike:
    """A strike that is to fall into a phase."""

    moment: Moment
    blow: Blow


def shares(strikes: int, chance: random.Random, rounds: int = 1) -> Counter[Moment]:
    """Return how many strikes each phase has; where they don't come out even, chance decides."""
    moments = [Moment(number, phase) for number in range(1, rounds + 1) for phase in Phase]
    whole, rest = divmod(strikes, len(moments))
    more = chance.sample(moments, rest)
    return Counter({moment: whole + (moment in more) for moment in moments})


def dealt(left: Mapping[Moment, int], chance: random.Random) -> list[Strike]:
    """Return the strikes of one cycle, in the order of its phases.

    No more workers of a phase than one item may lose: all might be of the same.
    """
    return [
        Strike(moment, blow)
        for moment in sorted(left, key=_place)
        for blow in _blows(min(left[moment], MOST_OF_A_PHASE), chance)
    ]


def _place(moment: Moment) -> tuple[int, int]:
    """Return what moments are sorted by."""
    return moment.round, list(Phase).index(moment.phase)


def _blows(count: int, chance: random.Random) -> list[Blow]:
    blows = [Blow.WORKER] * (MAX_FAILURES - 1) + [each for each in Blow if each is not Blow.WORKER]
    return chance.sample(blows, count)


@dataclass
class Struck:
    """What was struck."""

    moments: Counter[Moment] = field(default_factory=Counter[Moment])
    amid_work: int = 0
    """Strikes while workers ran."""
    amid_students: int = 0
    """Strikes while small students learned."""

    def add(self, more: "Struck") -> None:
        """Count these, too."""
        self.moments += more.moments
        self.amid_work += more.amid_work
        self.amid_students += more.amid_students

    def __str__(self) -> str:
        counts = Counter(moment.phase for moment in self.moments.elements())
        phases = ", ".join(f"{phase} {counts[phase]}" for phase in Phase)
        told = f"{self.amid_work} while workers ran, {self.amid_students} while small students did"
        return f"{counts.total()} strikes: {phases}; {told}"


class KilledCycle:
    """One cycle."""

    def __init__(self, cluster: Cluster, command: Sequence[str], chance: random.Random) -> None:
        self._cluster = cluster
        self._command = command
        self._chance = chance
        self._killer = Killer(cluster, chance)
        self._id = CycleId("")
        self._moment = Moment(1, Phase.COLLECT)
        self._round = 1
        self._looked_s = 0.0
        self._has_ended = False
        self.struck = Struck()

    async def run(self, strikes: Sequence[Strike]) -> CycleState:
        """Start the cycle and strike; return what is recorded in the end."""
        known = {*self._cluster[0].state().cycles}
        starting = asyncio.ensure_future(asyncio.to_thread(self._cluster.ctl, *self._command))
        try:
            await self._begun(known)
            for strike in strikes:
                await self._strike_in(strike)
            return await self._ended()
        finally:
            self._killer.rest()
            await starting  # a leader that was killed may owe the answer; the ledger tells all

    async def _strike_in(self, strike: Strike) -> None:
        """Strike somewhere in a phase, unless that is over."""
        if await self._reaches(strike.moment):
            if self._chance.random() < AMID_WORK:
                await self._until_work()
            await asyncio.sleep(self._chance.uniform(0.0, LASTS_S[strike.moment.phase]))
            await self._strike(strike.blow)

    async def _strike(self, blow: Blow) -> None:
        """Strike, unless the cycle has just ended."""
        self._looked_s = 0.0
        if self._is_over():
            return
        moment, working = self._now(), [worker.item for worker in self._killer.workers()]
        told = await self._killer.strike(blow)
        students = sum(STUDENT.match(item) is not None for item in working)
        self.struck.add(Struck(Counter([moment]), bool(working), bool(students)))
        at_work = ", ".join(working) or "nobody at work"
        print(f"  {time.strftime('%H:%M:%S')} {moment} ({at_work}): {told}", flush=True)

    async def _until_work(self) -> None:
        """Wait until somebody works, for a while."""
        deadline_s = time.monotonic() + WORK_TIMEOUT_S
        while not self._killer.workers() and not self._is_over():
            if time.monotonic() > deadline_s:
                return
            await asyncio.sleep(LOOK_S)

    async def _begun(self, known: Container[CycleId]) -> None:
        """Wait for the first worker: by then the cycle is recorded."""
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while not self._id or not self._killer.workers():
            assert time.monotonic() < deadline_s, self._cluster.failure_text("nobody begins")
            await asyncio.sleep(LOOK_S)
            found = self._cluster[0].state().cycles
            self._id = next((cycle for cycle in found if cycle not in known), self._id)

    async def _reaches(self, moment: Moment) -> bool:
        """Wait for a phase; False where it is over already."""
        deadline_s = time.monotonic() + PHASE_TIMEOUT_S
        while _place(self._now()) < _place(moment) and not self._is_over():
            assert time.monotonic() < deadline_s, self._cluster.failure_text(
                f"it never comes to {moment}"
            )
            await asyncio.sleep(LOOK_S)
        return self._moment == moment and not self._is_over()

    def _now(self) -> Moment:
        """Return what is worked on now, or was just before; not what is done ahead."""
        working = [worker.moment for worker in self._killer.workers()]
        begun = [moment for moment in working if moment.round <= self._round]
        self._moment = max(begun, key=_place, default=self._moment)
        return self._moment

    def _is_over(self) -> bool:
        """Say whether the cycle has ended; the ledger is looked at now and then."""
        now_s = time.monotonic()
        if not self._has_ended and now_s - self._looked_s > ENDED_LOOK_S:
            self._looked_s = now_s
            cycle = self._killer.recorded(self._id)
            if cycle is not None:
                self._has_ended, self._round = cycle.has_nothing_to_do, cycle.rounds_committed + 1
        return self._has_ended

    async def _ended(self) -> CycleState:
        deadline_s = time.monotonic() + END_TIMEOUT_S
        while not self._is_over():
            assert time.monotonic() < deadline_s, self._cluster.failure_text("it doesn't end")
            await asyncio.sleep(ENDED_LOOK_S)
        await self._killer.bring_all_back()
        cycle = self._killer.recorded(self._id)
        assert cycle is not None
        assert cycle.failed is None, self._cluster.failure_text(str(cycle.failed))
        return cycle


def start_command(domain: Path, generator: str, seed: int, rounds: int = 1) -> list[str]:
    """Return what starts a cycle in which the generator writes from the first round on."""
    options = {"--domain": domain, "--rounds": rounds, "--seed": seed, "--generator": generator}
    words = (str(word) for option in options.items() for word in option)
    return ["cycle", "start", *words, "--engine", "torch", "-o", "json"]
