"""A training run on three machines that is struck again and again, and must end as if it weren't.

Owns the way from three machines to the last check. Doesn't know what a strike is.
"""

import asyncio
import contextlib
import json
import math
import random
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from jupiterd.cluster.facts.facts import CheckpointCommitted
from tests.support.daemons.adapter_runs import Learner, learner
from tests.support.daemons.cluster import Document, all_gone
from tests.support.daemons.training_runs import write_letters
from tests.support.network.asked_run import AskedRun, is_open
from tests.support.network.blows import CUTS, Blow, Hit, blows_for_one_gang, dealt, strike
from tests.support.network.machines import Machine, Machines, machines_on
from tests.support.network.step_times import StepTimes, middle_and_worst
from tests.support.strikes.wholeness import left_over

RANKS = 3
BATCH = 1
STEPS_AT_LEAST = {"torch": 50, "mlx": 20}
STEPS_PER_STRIKE = {"torch": 100, "mlx": 56}
"""So many that the training is still running at the last strike."""

SEQ_LEN = 64
SEED = 7

JOIN_S = 30.0
PREPARED_S = 60.0
SETTLED_S = 2.0
"""After that, what a status says was done after the strike: it is told twice a second."""

GOES_ON_S = 30.0
WHOLE_S = 60.0
PATIENCE_S = 20.0
LEAST_RANKS = 2
GONE_S = 15.0
END_S = 120.0
END_S_PER_STEP = 0.3
LOOK_S = 0.1
PAUSE_S = (0.0, 2.0)

WAITS_FOR_ALL = 0.7
"""How often the next strike waits for a while until all train again."""

AT_MOST_LOST_STEPS = 1
AT_MOST_LOST_S = 30.0
"""Of a model that is cut: what came since the last whole set of parts."""

FETCHED_S = 10.0
"""So late may a set be whole, and in one place, where three machines share two busy cores."""

SAME_BPB = 0.02
"""How far apart the models of two seeds are."""


async def run_struck(
    folder: Path,
    engine: str,
    strikes: int,
    chance: random.Random,
    among: Sequence[Blow] = tuple(Blow),
    *,
    lora: bool = False,
    shard: str = "",
) -> None:
    """Train twice with the same seed, the second time under strikes; both must end alike.

    lora: train an adapter beside a model that stays as it is; shard: the stage in which the model
    is cut over the ranks; empty: each holds all of it
    """
    spare = strikes // 8  # while one machine trains alone nothing is struck, and it is quick
    steps = STEPS_AT_LEAST[engine] + STEPS_PER_STRIKE[engine] * (strikes + spare)
    letters = write_letters(folder)
    what = learner(folder, letters, lora=lora)
    async with machines_on(RANKS, folder) as machines:
        await machines.one_cluster(JOIN_S)
        for machine in machines.machines:
            assert machines.ctl("node", "role", machine.name, "trainer").returncode == 0
        command = ("data", "prepare", str(letters), *what.of_data)
        prepared = machines.ctl(*command, "--wait", "--timeout", str(PREPARED_S))
        assert prepared.returncode == 0, prepared.stderr
        began_s = time.monotonic()
        expected = await StruckRun(machines, engine, steps, what).undisturbed()
        print(f"undisturbed: val_bpb {expected:.4f} in {time.monotonic() - began_s:.0f} s")
        run = StruckRun(machines, engine, steps, what, shard)
        await run.struck(dealt(strikes, blows_for_one_gang(among), chance), chance)
        await run.assert_ends_like(expected)
        assert orphans(machines, folder) == []
    assert left_over(folder, []) == []


class StruckRun(AskedRun):
    """One training run."""

    def __init__(
        self, machines: Machines, engine: str, steps: int, what: Learner, shard: str = ""
    ) -> None:
        super().__init__(machines)
        self._what = what
        self._shard = shard
        self._times = StepTimes()
        self._lost: list[tuple[int, float]] = []
        """Steps, and seconds of training, of each strike that ended an attempt."""
        self._engine = engine
        self._steps = steps
        self._end_s = END_S + END_S_PER_STEP * steps

    async def undisturbed(self) -> float:
        """Train on one machine, with the same batch; return the bits per byte of the model."""
        self._train_on("1", BATCH * RANKS)
        return (await self._ended(self._end_s))["val_bpb"]

    async def struck(self, blows: Sequence[Blow], chance: random.Random) -> None:
        """Train on all machines, and strike; each time the training must go on."""
        self._train_on("all", BATCH)
        await self._until_ranks(RANKS, WHOLE_S)
        began_s = time.monotonic()
        async with self._times.watching(self._step):
            await self._strike_all(blows, chance)
        print(f"{len(blows)} strikes in {time.monotonic() - began_s:.0f} s", flush=True)
        print(f"lost to a strike: {middle_and_worst(self._lost)}", flush=True)

    async def _strike_all(self, blows: Sequence[Blow], chance: random.Random) -> None:
        for number, blow in enumerate(blows, 1):
            await asyncio.sleep(chance.uniform(*PAUSE_S))
            at_s = time.monotonic()
            told = await self._strike(blow, chance)
            on_s = time.monotonic() - at_s
            if chance.random() < WAITS_FOR_ALL:
                with contextlib.suppress(TimeoutError):  # who was often away must wait longer
                    share = STEPS_PER_STRIKE[self._engine] * number
                    await self._until_ranks(RANKS, PATIENCE_S, share)
            ranks = await self._until_whole()
            all_s = time.monotonic() - at_s
            print(f"{number:3} {told}  on {on_s:.1f} s  {ranks} ranks {all_s:.1f} s", flush=True)

    async def assert_ends_like(self, expected: float) -> None:
        """Wait for the end, and check what has come of it."""
        ended = await self._ended(self._end_s)
        await self._machines.one_cluster(JOIN_S)
        print(f"struck: val_bpb {ended['val_bpb']:.4f}, {ended['epoch']} epochs")
        assert abs(ended["val_bpb"] - expected) <= SAME_BPB, (ended["val_bpb"], expected)
        run = self._recorded()
        made = [fact for fact in run.canonical_branch() if isinstance(fact, CheckpointCommitted)]
        assert (made[-1].step, made[-1].is_final) == (self._steps, True)
        engines = {attempt.engine.partition("/")[0] for attempt in run.attempts_opened.values()}
        assert engines == {self._engine}
        stages = {a.stage for a in run.attempts_opened.values() if len(a.gang) > 1}
        assert stages == {int(self._shard or 0)}
        for machine in self._machines.machines:
            self._assert_trained_once(machine)

    def _train_on(self, nodes: str, batch: int) -> None:
        options = {
            "--data": "letters",
            "--model": self._what.model,
            "--engine": self._engine,
            "--nodes": nodes,
            "--max-steps": self._steps,
            "--seq-len": SEQ_LEN,
            "--batch-size": batch,
            "--gradient-accumulation-steps": 1,
            "--seed": SEED,
        }
        words = (word for option in options.items() for word in option)
        is_cut = bool(self._shard) and nodes != "1"  # one machine has nobody to share it with
        cut = ("--shard", self._shard) if is_cut else ()
        self._start(*words, *self._what.options, *cut)

    async def _step(self) -> tuple[int, int]:
        """Return the attempt, and the step that it has come to."""
        run, _ = await self._told(self._machines.machines, _ranks)
        return run.get("epoch", -1), run.get("step", 0)

    async def _strike(self, blow: Blow, chance: random.Random) -> str:
        """Strike once, and undo it when the others have gone on; return what came of it."""
        before, asked = await self._told(self._machines.machines, _ranks)
        at_s, what = time.monotonic(), f"before {blow}"
        assert _trains(before), await self._failure(f"{what}: the training is over; more steps")
        view = await asked.view()
        assert view is not None, await self._failure(f"{what}: {asked.name} doesn't answer")
        gang = [seat for seat in before["gang"] if seat["pid"]]
        hit = strike(self._machines, blow, view, gang, chance)
        try:
            after = await self._gone_on(before, hit)
        finally:
            hit.undo()
        assert await all_gone(hit.ends, GONE_S), await self._failure(f"{hit}: it goes on alone")
        lost = max(0, before["step"] - after["resumed_from_step"])
        is_change = after["epoch"] > before["epoch"]
        if not is_change:
            return f"{hit}: step {before['step']}"
        lost_s = self._times.since(before["epoch"], after["resumed_from_step"], at_s) if lost else 0
        if blow not in CUTS:
            self._lost.append((lost, lost_s))
            is_little = lost <= AT_MOST_LOST_STEPS or (
                self._shard and lost_s <= AT_MOST_LOST_S + FETCHED_S
            )
            told = f"{hit}: {lost} steps and {lost_s:.1f} s lost"
            assert is_little, await self._failure(told)
        resumed = f"-> {after['resumed_from_step']} ({lost_s:.1f} s), epoch {after['epoch']}"
        return f"{hit}: step {before['step']} {resumed}"

    async def _gone_on(self, before: Document, hit: Hit) -> Document:
        """Wait until those who weren't struck have finished a step after the strike."""
        if hit.lasts_s:
            await asyncio.sleep(hit.lasts_s)
            hit.undo()
        await asyncio.sleep(SETTLED_S)
        others = self._machines.but(*hit.struck)
        (reached, _), deadline_s = await self._told(others), time.monotonic() + GOES_ON_S
        while True:
            after, _ = await self._told(others)
            is_new = after.get("epoch", 0) > before["epoch"] and _has_stepped(after)
            if not is_open(after) or is_new or after["step"] > reached.get("step", 0):
                return after
            if time.monotonic() > deadline_s:
                raise AssertionError(await self._failure(f"{hit}: no step in {GOES_ON_S:g} s"))
            await asyncio.sleep(LOOK_S)

    async def _until_whole(self) -> int:
        """Wait until more than one rank trains, so that one may be lost; return how many do."""
        try:
            return await self._until_ranks(LEAST_RANKS, WHOLE_S)
        except TimeoutError:
            told = f"no gang of {LEAST_RANKS} in {WHOLE_S:g} s"
            raise AssertionError(await self._failure(told)) from None

    async def _until_ranks(self, ranks: int, within_s: float, by_step: float = math.inf) -> int:
        """Wait until so many ranks have finished a step of their epoch, or it is time anyway."""
        async with asyncio.timeout(within_s):
            while True:
                run, _ = await self._told(self._machines.machines)
                seats = [seat for seat in run.get("gang", []) if seat["pid"]]
                is_whole = bool(run) and len(seats) >= ranks and _has_stepped(run)
                if is_whole or (run and (not is_open(run) or run["step"] >= by_step)):
                    return len(seats)
                await asyncio.sleep(LOOK_S)

    def _assert_trained_once(self, machine: Machine) -> None:
        audited = self._machines.ctl("data", "audit", self._id, "-o", "json", daemon=machine)
        assert audited.returncode == 0, audited.stdout + audited.stderr
        (proof,) = json.loads(audited.stdout)["audit"]
        (only,) = proof["rounds"]
        cursor = self._steps * BATCH * RANKS
        assert (proof["ok"], only["cursor"], only["tokens"]) == (True, cursor, cursor * SEQ_LEN)


def orphans(machines: Machines, folder: Path) -> list[str]:
    """Return the processes of the machines that no daemon is an ancestor of."""
    daemons = {machine.pid for machine in machines.machines}
    found = [psutil.Process(int(row.partition(":")[0])) for row in left_over(folder, [])]
    return [
        f"{process.pid}: {process.cmdline()}"
        for process in found
        if not daemons & {process.pid, *(parent.pid for parent in process.parents())}
    ]


def _ranks(run: Document) -> int:
    """Return how many train; one that was cut off may still tell of a gang of its own."""
    return len(run.get("gang", []))


def _trains(run: Document) -> bool:
    return run.get("state") == "running" and bool(run["gang"])


def _has_stepped(run: Document) -> bool:
    return run["step"] > (run["resumed_from_step"] or 0)
