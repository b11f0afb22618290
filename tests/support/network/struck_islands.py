"""A training by islands on three machines that is struck at random, and ends as if it weren't.

Owns the way from three machines to the last check. Doesn't know what a strike is (`blows`), or what
must hold of the outer steps in the end (`outer_line_checks`).
"""

import asyncio
import math
import random
import time
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager, nullcontext
from enum import StrEnum
from pathlib import Path
from statistics import fmean

from jupiterd.cluster.ledger.island_runs import islands_of, number_of
from jupiterd.ids import CycleId
from tests.support.daemons.adapter_runs import Learner, learner
from tests.support.daemons.cluster import Document, all_gone
from tests.support.daemons.training_runs import WORDS, write_letters
from tests.support.network import links
from tests.support.network.asked_run import LOOK_S, AskedRun, is_open
from tests.support.network.blows import CUTS, Blow, Hit, dealt, strike
from tests.support.network.machines import Machine, Machines, machines_on
from tests.support.network.outer_line_checks import (
    Struck,
    assert_audited,
    assert_equal_weights,
    assert_nobody_lost_more,
    assert_one_line,
    assert_taken_once,
)
from tests.support.network.struck_run import orphans
from tests.support.strikes.wholeness import left_over

MIXED = "mlx:m1 torch:m2,m3"
THREE = "mlx:m1 torch:m2 torch:m3"

MACHINES = 3
EVERY = 20
"""Inner steps of a round."""

ROUNDS_AT_LEAST = 4
ROUNDS_PER_STRIKE = 10
"""So many that the training is still running at the last strike."""

SEQ_LEN = 64
BATCH = 2
"""Sequences of each rank and step; a second is left of a step where an island has one rank."""

SEED = 7

JOIN_S = 30.0
PREPARED_S = 120.0
BEGUN_S = 120.0
GOES_ON_S = 90.0
"""A machine that was away for good holds its island up until it is known to be."""

WHOLE_S = 90.0
GONE_S = 15.0
CLEARED_S = 15.0
MOMENT_S = 20.0
"""How long a moment of the round is waited for; then it is struck anyway."""

END_S = 120.0
END_S_PER_ROUND = 10.0
PAUSE_S = (0.0, 2.0)
LOOK_CLOSELY_S = 0.02
SLOW = "20mbit"
"""A way takes half a second then."""

ROUNDS_AFTER = 2
"""The round that was struck may have been as good as over; the one after it wasn't."""

OPEN_ROUNDS = {"blocking": 1, "overlapped": 2}
"""What a struck island may lose: the round it trains, and one whose way is on its way."""

ROUNDS_LOST_APART = 2
"""The one that an island was in, and one before it knows that its own outer steps don't count."""

SAME_BPB = 0.02
"""How far apart the models of two seeds are; such runs have come within 0.005 of each other."""

LEARNED_BPB = math.log2(len(WORDS)) / (fmean(map(len, WORDS)) + 1)
"""What the text has: words drawn alike, with a space behind each."""


class Moment(StrEnum):
    """When a round is struck."""

    ANY = "at any time"
    FIRST_WAY_IN = "with the first way in"
    STEP_TAKEN = "as ways are fetched"


async def run_struck_islands(
    folder: Path,
    islands: str,
    blows: Sequence[tuple[Blow, Moment]],
    chance: random.Random,
    expected: float | None = None,
    *,
    lora: bool = False,
) -> None:
    """Train by islands under strikes; it must end as if there weren't any.

    expected: bits per byte of the model in the end; None: train without strikes before, to know;
    lora: train an adapter beside a model that stays as it is
    """
    sync = chance.choice(("blocking", "overlapped"))
    print(f"{islands}, {sync}", flush=True)
    rounds = ROUNDS_AT_LEAST + ROUNDS_PER_STRIKE * len(blows)
    letters = write_letters(folder)
    what = learner(folder, letters, lora=lora)
    async with machines_on(MACHINES, folder) as machines:
        await machines.one_cluster(JOIN_S)
        command = ("data", "prepare", str(letters), *what.of_data)
        prepared = machines.ctl(*command, "--wait", "--timeout", str(PREPARED_S))
        assert prepared.returncode == 0, prepared.stderr
        if expected is None:
            expected = await StruckIslands(machines, what, islands, rounds, sync).undisturbed()
        run = StruckIslands(machines, what, islands, rounds, sync)
        await run.struck(blows, chance)
        await run.assert_ends_like(expected)
        assert orphans(machines, folder) == []
        await _until_cleared(machines)
    assert left_over(folder, []) == []


def dealt_with_moments(
    count: int, chance: random.Random, among: Sequence[Blow] = tuple(Blow)
) -> list[tuple[Blow, Moment]]:
    """Return so many blows, of each kind about as many, each at a moment drawn by chance."""
    return [(blow, chance.choice(list(Moment))) for blow in dealt(count, among, chance)]


class StruckIslands(AskedRun):
    """One training run by islands."""

    def __init__(
        self, machines: Machines, what: Learner, islands: str, rounds: int, sync: str
    ) -> None:
        super().__init__(machines)
        self._what = what
        self._sync = sync
        self._islands = islands
        self._rounds = rounds
        self._struck: list[Struck] = []

    async def undisturbed(self) -> float:
        """Train, and strike nothing; return the bits per byte of the model."""
        began_s = time.monotonic()
        self._begin()
        val_bpb = (await self._ended(self._end_s))["val_bpb"]
        took_s = time.monotonic() - began_s
        print(f"undisturbed: val_bpb {val_bpb:.4f} in {took_s:.0f} s", flush=True)
        return val_bpb

    async def struck(self, blows: Sequence[tuple[Blow, Moment]], chance: random.Random) -> None:
        """Train, and strike; each time outer steps must go on."""
        self._begin()
        await self._until(_all_train, BEGUN_S, "all islands train")
        began_s = time.monotonic()
        for number, (blow, moment) in enumerate(blows, 1):
            told = await self._strike(blow, moment, chance)
            print(f"{number:3} {told}", flush=True)
        print(f"{len(blows)} strikes in {time.monotonic() - began_s:.0f} s", flush=True)

    async def assert_ends_like(self, expected: float) -> None:
        """Wait for the end, and check what has come of it."""
        ended = await self._ended(self._end_s)
        await self._machines.one_cluster(JOIN_S)
        print(f"struck: val_bpb {ended['val_bpb']:.4f}, {ended['epoch']} epochs", flush=True)
        runs = [self._recorded(machine) for machine in range(MACHINES)]
        line = assert_one_line(runs, self._rounds * EVERY)
        names = assert_equal_weights(self._machines.machines, runs[0])
        assert_taken_once(self._machines.machines)
        lost = assert_nobody_lost_more(line, self._numbers(), self._struck)
        print(f"{len(line) - 1} outer steps, {names} compared, {lost} ways lost", flush=True)
        assert_audited(self._machines, self._id, line, SEQ_LEN)
        assert abs(ended["val_bpb"] - expected) <= SAME_BPB, (ended["val_bpb"], expected)

    @property
    def _end_s(self) -> float:
        return END_S + END_S_PER_ROUND * self._rounds

    def _begin(self) -> None:
        self._start(
            *("--data", "letters", "--model", self._what.model, *self._what.options),
            *("--seq-len", SEQ_LEN, "--seed", SEED),
            *("--batch-size", BATCH, "--gradient-accumulation-steps", 1),
            *("--max-steps", self._rounds * EVERY, "--sync-every", EVERY),
            *("--islands", self._islands, "--sync", self._sync),
        )

    async def _strike(self, blow: Blow, moment: Moment, chance: random.Random) -> str:
        """Strike once, undo it when the others have gone on, and wait for the struck island."""
        with nullcontext() if moment is Moment.ANY else self._slow_links():
            before, asked = await self._at(moment, chance)
            hit = await self._hit(blow, before, asked, chance)
        at_s = time.monotonic()
        try:
            await self._gone_on(before, hit)
        finally:
            hit.undo()
        on_s = time.monotonic() - at_s
        assert await all_gone(hit.ends, GONE_S), await self._failure(f"{hit}: it goes on alone")
        after = await self._until(_all_train, WHOLE_S, f"{hit}: all islands train again")
        first, last = before["outer_steps"], after["outer_steps"]
        open_rounds = OPEN_ROUNDS[self._sync]
        rounds = max(open_rounds, ROUNDS_LOST_APART if blow in CUTS else 1)
        oldest = first - open_rounds + 1
        self._struck.append(Struck(self._islands_of(hit, before), oldest, last, rounds))
        reached = f"outer step {first} -> {last}"
        return f"{hit} {moment}: {reached}, on {on_s:.1f} s, all {time.monotonic() - at_s:.1f} s"

    async def _hit(
        self, blow: Blow, before: Document, asked: Machine, chance: random.Random
    ) -> Hit:
        what = f"before {blow}"
        assert _is_trained(before), await self._failure(f"{what}: the training is over; more steps")
        view = await asked.view()
        assert view is not None, await self._failure(f"{what}: {asked.name} doesn't answer")
        gang = [seat for seat in before["gang"] if seat["pid"]]
        return strike(self._machines, blow, view, gang, chance)

    @contextmanager
    def _slow_links(self) -> Generator[None]:
        """Let ways take so long that a strike finds them on their way.

        Not by the links of a gang: each of its steps would take seconds, and its round too long.
        """
        alone = {one.partition(":")[2] for one in self._islands.split() if "," not in one}
        hosts = [machine.host for machine in self._machines.machines if machine.name in alone]
        for host in hosts:
            links.throttle(host, 0, SLOW)
        try:
            yield
        finally:
            for host in hosts:
                links.free(host)

    async def _at(self, moment: Moment, chance: random.Random) -> tuple[Document, Machine]:
        """Wait for a moment of a round; return what is told then, and who tells it."""
        if moment is Moment.ANY:
            await asyncio.sleep(chance.uniform(*PAUSE_S))
            return await self._told(self._machines.machines)
        (first, _) = await self._told(self._machines.machines)
        is_so = _first_way_is_in if moment is Moment.FIRST_WAY_IN else _has_taken(first)
        deadline_s = time.monotonic() + MOMENT_S
        while True:
            run, asked = await self._told(self._machines.machines)
            if is_so(run) or not is_open(run) or time.monotonic() > deadline_s:
                return run, asked
            await asyncio.sleep(LOOK_CLOSELY_S)

    async def _gone_on(self, before: Document, hit: Hit) -> None:
        """Wait until those who weren't struck have gone through a whole round since."""
        if hit.lasts_s:
            await asyncio.sleep(hit.lasts_s)
            hit.undo()
        wanted = before["outer_steps"] + ROUNDS_AFTER
        others = self._machines.but(*hit.struck)
        await self._until(
            lambda run: run["outer_steps"] >= wanted, GOES_ON_S, f"{hit}: they go on", others
        )

    async def _until(
        self,
        is_so: Callable[[Document], bool],
        within_s: float,
        what: str,
        among: Collection[Machine] = (),
    ) -> Document:
        """Wait until somebody tells so, or nothing is left to train; return what is told."""
        deadline_s = time.monotonic() + within_s
        while True:
            run, _ = await self._told([*among] or self._machines.machines)
            if run and (is_so(run) or not is_open(run)):
                return run
            if time.monotonic() > deadline_s:
                raise AssertionError(await self._failure(f"{what}: not within {within_s:g} s"))
            await asyncio.sleep(LOOK_S)

    def _islands_of(self, hit: Hit, run: Document) -> frozenset[int]:
        """Return the islands that a strike may cost a round: all, where either side may go on."""
        islands = self._machines_of_islands()
        if hit.blow in CUTS:
            return frozenset(islands)
        names = {machine.name for machine in hit.struck}
        return frozenset(number for number, of_it in islands.items() if names & of_it)

    def _numbers(self) -> dict[CycleId, int]:
        cycles = self._machines[0].state().cycles
        return {run.cycle: number_of(run) for _, run in islands_of(cycles, CycleId(self._id))}

    def _machines_of_islands(self) -> dict[int, set[str]]:
        parts = [part.partition(":")[2].split(",") for part in self._islands.split()]
        return {number: set(names) for number, names in enumerate(parts, 1)}


async def _until_cleared(machines: Machines) -> None:
    """Wait until no folder of a worker is left, and none of a piece of work."""
    deadline_s = time.monotonic() + CLEARED_S
    while left := [
        str(path)
        for machine in machines.machines
        for kind in ("spool", "scratch")
        for path in (machine.state_dir / kind).iterdir()
    ]:
        assert time.monotonic() < deadline_s, machines.failure_text(f"left over: {left}")
        await asyncio.sleep(LOOK_S)


def _all_train(run: Document) -> bool:
    """Say whether each island has its ranks, and has a part in a round."""
    states = [island["state"] for island in run["islands"]]
    ranks = [seat for seat in run["gang"] if seat["pid"]]
    return bool(states) and {*states} <= {"training", "in"} and len(ranks) == MACHINES


def _is_trained(run: Document) -> bool:
    return run.get("state") == "running" and bool(run["gang"])


def _first_way_is_in(run: Document) -> bool:
    states = [island["state"] for island in run.get("islands", [])]
    return "in" in states and "training" in states


def _has_taken(first: Document) -> Callable[[Document], bool]:
    return lambda run: run.get("outer_steps", 0) > first["outer_steps"]
