"""One of three islands is killed for good: what the others keep, and how long they wait.

Owns this figure. Doesn't know how islands are made.
"""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from statistics import median

from jupiterd.cluster.facts import OuterStepTaken
from jupiterd.cycle.outer_round import GRACE, LEAST_GRACE_S
from jupiterd.cycle.plan import ModelShape
from tests.bench.artifacts.stations import GBIT
from tests.bench.islands.network import verdict
from tests.bench.islands.rounds import Heard, equal_digests
from tests.bench.islands.wired import Wired, wired
from tests.network.machines import Machine

BEFORE, AFTER = 2, 3
"""Whole rounds."""

LOOK_S = 0.05
LONGEST_S = 600.0


async def print_killed(shape: ModelShape, every: int) -> None:
    """Kill one of three in mid-round, and print what came of it."""
    async with wired(3, GBIT, shape) as on:
        who = "mlx:m1 torch:m2 torch:m3"
        steps = every * (BEFORE + 1 + AFTER)
        await on.start(steps, "--islands", who, "--sync-every", str(every))
        struck = await _struck(on)
        await _until(on, struck, BEFORE * every + every // 2)
        asked = next(n for n, each in enumerate(on.machines.machines) if each is not struck)
        before = [*on.recorded(asked).outer_line()]
        _kill(struck)
        at_s = time.monotonic()
        await on.until_over(LONGEST_S, asked)
        line = on.recorded(asked).outer_line()
        said = on.heard()
        done = said.pop(struck.name)
        islands = on.islands(asked)
        dead = islands.pop(struck.name)
        is_kept = [*line][: len(before)] == before
        _print_kept(is_kept, said, line.values(), islands, dead, done)
        _print_wait([*line.values()], said, at_s)


async def _struck(on: Wired) -> Machine:
    """Return a machine that doesn't lead: the last one of these."""
    view = await on.machines[0].ask()
    assert view is not None
    return on.machines.but(on.machines.leader(view))[-1]


async def _until(on: Wired, struck: Machine, step: int) -> None:
    deadline_s = time.monotonic() + LONGEST_S
    while step not in (on.heard().get(struck.name) or Heard()).at_s:
        assert time.monotonic() < deadline_s, on.machines.told(f"{struck.name}: no step {step}")
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
    line: Collection[OuterStepTaken],
    islands: Mapping[str, str],
    dead: str,
    of_dead: Heard,
) -> None:
    """Print what is left of what was trained before the kill, and what follows."""
    lost = sum(_repeated(each) for each in said.values())
    lost += sum(_left_out(each, line) for each in islands.values())
    with_it = [taken.number for taken in line if dead in taken.islands]
    last = list(line)[-1]
    equal, of = equal_digests([*said.values()])
    began = next(taken.first_step for taken in line if taken.number == with_it[-1])
    print(
        f"kill one of three: {len(with_it)} rounds with it, {last.number - len(with_it)} without; "
        f"the others lose {lost} steps {verdict(is_kept and not lost)} (goal 0), it loses "
        f"{of_dead.steps[-1][0] - began} of its round; {last.first_step} steps, "
        f"{last.total_tokens:,} tokens in the end; weights equal after {equal} of {of} outer steps "
        f"{verdict(equal == of > 0)}"
    )


def _repeated(island: Heard) -> int:
    """Return how many steps were trained more than once."""
    steps = [step for step, _ in island.steps]
    return len(steps) - len({*steps})


def _left_out(island: str, line: Collection[OuterStepTaken]) -> int:
    """Return how many steps were for nothing: the round was closed before they were done."""
    rounds = pairwise(line)
    return sum(taken.steps for taken, ended in rounds if island not in ended.islands)


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
        f"kill one of three: the others waited {waits[struck]:.2f} s at the round's end, otherwise "
        f"{usual_s:.2f} s (median): {extra_s:+.2f} s "
        f"{verdict(extra_s <= grace_s)} (goal: the grace, {grace_s:.2f} s)"
    )


def _wait_s(island: Heard, taken: OuterStepTaken) -> float:
    """Return how long an island waited from its last step to that outer step."""
    taken_s = island.outer[taken.number][1]
    return taken_s - max(at_s for _, at_s in island.steps if at_s <= taken_s)


def _round_s(said: Mapping[str, Heard], number: int) -> float:
    return max(each.outer[number][1] - each.outer[number - 1][1] for each in said.values())
