"""How fast machines train by themselves: all at once, as they share the processors, without cables.

Owns pulling the cables, one run on each machine, and their speeds. Such a run writes checkpoints,
too: half as large, and twice as often as islands. Doesn't know what it is compared with.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod

from jupiterd.cluster.facts.facts import OuterStepTaken
from tests.bench.islands.processor_use import Span
from tests.bench.islands.rounds import Heard
from tests.bench.islands.wired import BATCH, JOIN_S, SEQ_LEN, Wired
from tests.support.network.links import plug, pull
from tests.support.network.machines import Views

APART_S = 60.0


@dataclass(frozen=True)
class Solo:
    """Machines that train by themselves."""

    speeds: Sequence[float]
    """Tokens/s of each, by their numbers."""
    processor_share: float
    """What workers have of a machine's processor."""


async def train_apart(
    on: Wired, engines: Mapping[int, str], taken: OuterStepTaken, steps: int, timeout_s: float
) -> Solo:
    """Let each machine train by itself while all others do, too.

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
    names = {number: on.machines[number].name for number in engines}
    spans = {n: _middle(heard[name], steps) for n, name in names.items()}
    speeds = [
        prod(micros[n]) * SEQ_LEN * _middle_steps(steps) / (to_s - from_s)
        for n, (from_s, to_s) in spans.items()
    ]
    use = on.stamps.processors.share({names[n]: span for n, span in spans.items()})
    return Solo(speeds, use)


def _micros(batch: int) -> tuple[int, int]:
    """Return how many micro batches an island makes of a step's part, and how long equal ones are.

    A micro batch has as many sequences as were asked for, however many an island is given.
    """
    many = ceil(batch / BATCH)
    return many, ceil(batch / many)


def _are_apart(views: Views) -> bool:
    return all(view is not None and view["cluster"]["nodes_alive"] == 1 for view in views)


def _middle_steps(steps: int) -> int:
    return 3 * steps // 4 - steps // 4


def _middle(heard: Heard, steps: int) -> Span:
    return heard.at_s[steps // 4], heard.at_s[3 * steps // 4]
