"""How fast machines train by themselves: all at once, as they share the processors, without cables.

Owns pulling the cables, one run on each machine, and their speeds. A run writes its checkpoints as
those of islands do. Doesn't know what it is compared with.
"""

import asyncio
from collections.abc import Mapping
from math import ceil, prod

from jupiterd.cluster.facts import OuterStepTaken
from tests.bench.islands.rounds import Heard
from tests.bench.islands.wired import BATCH, JOIN_S, SEQ_LEN, Wired
from tests.network.links import plug, pull
from tests.network.machines import Views

APART_S = 60.0


async def solo_speeds(
    on: Wired, engines: Mapping[int, str], taken: OuterStepTaken, steps: int, timeout_s: float
) -> list[float]:
    """Return the tokens/s of each machine while all others train, too.

    Of so many steps those in the middle count: machines begin and end at different times, and one
    that trains when others have ended has all of a shared processor's caches and memory.

    Args:
        on: machines that train nothing just now.
        engines: by the machines' numbers.
        taken: each takes as many sequences in a step as its island was told there, in as many
            micro batches; rounded up where these can't be alike.
        steps: of each run.
        timeout_s: for all of it.
    """
    runs = on.islands()
    micros = {n: _micros(taken.batches[runs[on.machines[n].name]]) for n in engines}
    hosts = [machine.host for machine in on.machines.machines]
    for host in hosts:
        pull(host)
    await on.machines.until_all(_are_apart, "machines without cables", APART_S)
    for number, engine in engines.items():
        many, size = map(str, micros[number])
        options = ("--islands", "off", "--engine", engine)
        options += ("--batch-size", size, "--gradient-accumulation-steps", many)
        await on.start(steps, *options, machine=number, is_first=number == min(engines))
    await asyncio.gather(*(on.until_over(timeout_s, number) for number in engines))
    heard = on.heard()
    for host in hosts:
        plug(host)
    await on.machines.one_cluster(JOIN_S)
    return [
        prod(micros[n])
        * SEQ_LEN
        * _steps_per_s(heard[on.machines[n].name], steps // 4, 3 * steps // 4)
        for n in engines
    ]


def _micros(batch: int) -> tuple[int, int]:
    """Return how many micro batches an island makes of a step's part, and how long equal ones are.

    A micro batch has as many sequences as were asked for, however many an island is given.
    """
    many = ceil(batch / BATCH)
    return many, ceil(batch / many)


def _are_apart(views: Views) -> bool:
    return all(view is not None and view["cluster"]["nodes_alive"] == 1 for view in views)


def _steps_per_s(heard: Heard, first: int, last: int) -> float:
    return (last - first) / (heard.at_s[last] - heard.at_s[first])
