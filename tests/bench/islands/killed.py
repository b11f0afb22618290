"""One of three islands is killed for good: what the others keep, and how long they wait.

Owns this figure. Doesn't know how islands are made.
"""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Mapping, Sequence
from statistics import median

from jupiterd.cluster.facts.facts import OuterStepTaken
from jupiterd.cycle.islands.outer_orders import BLOCKING
from jupiterd.cycle.islands.outer_round import GRACE, LEAST_GRACE_S
from jupiterd.cycle.training.plan import ModelShape
from tests.bench.artifacts.stations import GBIT
from tests.bench.islands.losses import verdict
from tests.bench.islands.rounds import Heard, equal_digests
from tests.bench.islands.wired import Wired, wired
from tests.support.network.machines import Machine

BEFORE, AFTER = 2, 3
"""Whole rounds."""

LOOK_S = 0.05
LONGEST_S = 600.0


async def print_killed(shape: ModelShape, every: int, sync: str) -> None:
    """Kill one of three in mid-round, and print what came of it.

    sync: `blocking` or `overlapped`
    """
    async with wired(3, GBIT, shape) as on:
        who = "mlx:m1 torch:m2 torch:m3"
        steps = every * (BEFORE + 1 + AFTER)
        await on.start(steps, "--islands", who, "--sync-every", str(every), "--sync", sync)
        struck = await _struck(on)
        await _until(on, struck, BEFORE * every + every // 2)
        asked = next(n for n, each in enumerate(on.machines.machines) if each is not struck)
        before = [*on.recorded(asked).outer_branch()]
        _kill(struck)
        at_s = time.monotonic()
        await on.until_over(LONGEST_S, asked)
        line = on.recorded(asked).outer_branch()
        said = on.heard()
        done = said.pop(struck.name)
        islands = on.islands(asked)
        dead = islands.pop(struck.name)
        is_kept = [*line][: len(before)] == before
        print(f"kill one of three, {sync}:")
        _print_kept(is_kept, said, [*line.values()], islands, dead, done)
        if sync == BLOCKING:
            _print_wait([*line.values()], said, at_s)


async def _struck(on: Wired) -> Machine:
    """Return a machine that doesn't lead: the last one of these."""
    view = await on.machines[0].ask()
    assert view is not None
    return on.machines.but(on.machines.leader(view))[-1]


async def _until(on: Wired, struck: Machine, step: int) -> None:
    deadline_s = time.monotonic() + LONGEST_S
    while step not in (on.heard().get(struck.name) or Heard()).at_s:
        assert time.monotonic() < deadline_s, on.machines.failure_text(
            f"{struck.name}: no step {step}"
        )
        await asyncio.sleep(LOOK_S)


def _kill(struck: Machine) -> None:
    workers = struck.workers()
    struck.kill()
    for pid in workers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _print_kept(
    is_kept: bool,
    said: Mapping[str, Heard],
    line: Sequence[OuterStepTaken],
    islands: Mapping[str, str],
    dead: str,
    of_dead: Heard,
) -> None:
    """Print what is left of what was trained before the kill, and what follows."""
    lost = sum(_repeated(each) for each in said.values())
    lost += sum(_left_out(each, line) for each in islands.values())
    rounds = _rounds(line)
    with_it = [closed for closed, ended in rounds if dead in ended.islands]
    last = line[-1]
    equal, of = equal_digests([*said.values()])
    kept = with_it[-1].first_step + with_it[-1].steps
    print(
        f"  {len(with_it)} rounds with it, {len(rounds) - len(with_it)} without; "
        f"the others lose {lost} steps {verdict(is_kept and not lost)} (goal 0), it loses "
        f"{of_dead.steps[-1][0] - kept} since its last whole round; {last.first_step} steps, "
        f"{last.total_tokens:,} tokens in the end; weights equal after {equal} of {of} outer steps "
        f"{verdict(equal == of > 0)}"
    )


def _repeated(island: Heard) -> int:
    """Return how many steps were trained more than once."""
    steps = [step for step, _ in island.steps]
    return len(steps) - len({*steps})


def _left_out(island: str, line: Sequence[OuterStepTaken]) -> int:
    """Return how many steps were for nothing: the round was closed before they were done."""
    return sum(closed.steps for closed, ended in _rounds(line) if island not in ended.islands)


def _rounds(line: Sequence[OuterStepTaken]) -> list[tuple[OuterStepTaken, OuterStepTaken]]:
    """Return the outer steps that ordered a round, each with the one that merged its ways."""
    return [(line[n - ended.lag], ended) for n, ended in enumerate(line) if ended.islands]


def _print_wait(line: Sequence[OuterStepTaken], said: Mapping[str, Heard], at_s: float) -> None:
    """Print how long the others waited at the end of each round."""
    waits: dict[int, float] = {}
    rounds_s: dict[int, float] = {}
    for taken in line[1:-1]:
        each = [_wait_s(island, taken) for island in said.values()]
        waits[taken.number], rounds_s[taken.number] = max(each), _round_s(said, taken.number)
    struck = next(n for n in waits if min(i.outer[n][1] for i in said.values()) > at_s)
    usual_s = median(wait for number, wait in waits.items() if number != struck)
    grace_s = max(LEAST_GRACE_S, GRACE * rounds_s[struck])
    extra_s = waits[struck] - usual_s
    print(
        f"  the others waited {waits[struck]:.2f} s at the round's end, otherwise "
        f"{usual_s:.2f} s (median): {extra_s:+.2f} s "
        f"{verdict(extra_s <= grace_s)} (goal: the grace, {grace_s:.2f} s)"
    )


def _wait_s(island: Heard, taken: OuterStepTaken) -> float:
    """Return how long an island waited from its last step to that outer step."""
    taken_s = island.outer[taken.number][1]
    return taken_s - max(at_s for _, at_s in island.steps if at_s <= taken_s)


def _round_s(said: Mapping[str, Heard], number: int) -> float:
    return max(each.outer[number][1] - each.outer[number - 1][1] for each in said.values())
