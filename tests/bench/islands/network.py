"""Islands of real daemons over links of 1 Gbit/s: how fast, how much is sent, the same weights.

Owns these figures. Doesn't know how machines are made, or when what was said.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, mean

from jupiterd.cycle.islands.outer_orders import BLOCKING, OVERLAPPED
from jupiterd.cycle.training.plan import ModelShape
from tests.bench.artifacts.stations import GBIT
from tests.bench.islands.losses import verdict
from tests.bench.islands.rounds import (
    Part,
    equal_digests,
    parts,
    share_of_calm,
    share_of_inner,
    speed,
    stretches,
)
from tests.bench.islands.solo import Solo, train_apart
from tests.bench.islands.wired import BATCH, SEQ_LEN, Wired, wired
from tests.support.daemons.cluster import Document

IDLE_S = 8.0
FIRST_COUNTED = 10
"""Of the steps of synchronous training."""

COUNTED = 200
LEFT_OUT = 1
"""Rounds: they begin apart."""

LAST = 1
"""Rounds of a run's end that are left out, too: held-out text is scored, and the model copied."""

MEASURING_ROUNDS, MEASURING_STEPS = 3, 200
"""Of runs before the others: nothing is predicted of machines that were never measured so."""

SOLO_SHARE, OVERLAPPED_SHARE, OF_DDP, PREDICTION = 95.0, 99.0, 200.0, 20.0
SOLO_STEPS = 250
"""Of each run of machines by themselves: one between both forms of islands, and one after them."""

LONGEST_S = 1200.0

Rounds = Sequence[Mapping[str, Part]]


@dataclass(frozen=True)
class Pass:
    """All layouts one after another: a machine's speed drifts, and so they are near in time."""

    blocking: float
    """Tokens/s, as those of the others."""
    overlapped: float
    overlapped_share: float
    """What workers have of a processor then."""
    solo: Sequence[Solo]
    """Each machine by itself, all at once, without cables: before that run and after it."""
    synchronous: float
    sent: float
    """Bytes per token of islands."""
    sent_synchronous: float

    @property
    def solo_speeds(self) -> list[float]:
        """Return the tokens/s of each machine by itself."""
        return [*map(fmean, zip(*(each.speeds for each in self.solo), strict=True))]


async def print_network(
    shape: ModelShape, machines: int, every: int, rounds: int, passes: int
) -> None:
    """Let an MLX and torch islands train on machines of their own, and print what came of it.

    machines: how many; the first one is on MLX
    every: steps between two exchanges
    rounds: of each run, beside those that are left out
    passes: how often everything is measured
    """
    async with wired(machines, GBIT, shape) as on:
        idle = await _idle(on)
        print(f"  idle, all {machines} machines send {idle / 1e3:,.1f} kB/s", flush=True)
        await _run(on, every * MEASURING_ROUNDS, *_islands(on, every, BLOCKING))
        await _run(on, MEASURING_STEPS, *_gang(on))
        measured: list[Pass] = []
        for number in range(passes):
            print(f"  pass {number + 1} of {passes}", flush=True)
            measured.append(await _pass(on, every, every * (rounds + LEFT_OUT + LAST), idle))
            print_shares(every, measured)
        print_ratio(measured, every)


async def _pass(on: Wired, every: int, steps: int, idle: float) -> Pass:
    told = await _run(on, steps, *_islands(on, every, BLOCKING))
    blocking = print_speed(_rounds(on))
    print_prediction(BLOCKING, blocking, told)
    print_hashes(on)
    sent = print_sent(on, idle)
    before = await _solo(on)
    told = await _run(on, steps, *_islands(on, every, OVERLAPPED))
    overlapped, share = print_overlapped(on, told)
    print_hashes(on)
    solo = (before, await _solo(on))
    synchronous, sent_synchronous = await _synchronous(on, idle)
    return Pass(blocking, overlapped, share, solo, synchronous, sent, sent_synchronous)


async def _solo(on: Wired) -> Solo:
    taken = [each for each in on.recorded().outer_branch().values() if each.steps][-1]
    return await train_apart(on, _engines(on), taken, SOLO_STEPS, LONGEST_S)


async def _run(on: Wired, steps: int, *options: str) -> Document:
    await on.start(steps, *options)
    return await on.until_over(LONGEST_S)


def _engines(on: Wired) -> Mapping[int, str]:
    """Return what each machine trains on where islands do, by its number."""
    return {number: "torch" if number else "mlx" for number in range(len(on.names))}


def _islands(on: Wired, every: int, sync: str) -> Sequence[str]:
    who = " ".join(f"{engine}:{on.names[number]}" for number, engine in _engines(on).items())
    how = ("--sync", sync, "--sync-every", str(every), "--ways", "int8")
    return "--islands", who, *how


def _gang(on: Wired) -> Sequence[str]:
    return "--islands", "off", "--engine", "torch", "--nodes", ",".join(on.names)


async def _idle(on: Wired) -> float:
    """Return the bytes per second that machines send while they train nothing."""
    began_s = time.monotonic()
    await asyncio.sleep(IDLE_S)
    return on.stamps.usual_rate(began_s, time.monotonic())


def _rounds(on: Wired) -> Rounds:
    line = [*on.recorded().outer_branch().values()]
    islands = on.islands()
    said = on.heard()
    assert {*said} == {*islands}, f"heard of {[*said]}"
    pairs = pairwise(line[LEFT_OUT:-LAST])
    return [parts(said, islands, taken, ended, SEQ_LEN) for taken, ended in pairs]


def print_speed(rounds: Rounds) -> float:
    """Print where the time of rounds went; return the tokens/s over whole ones."""
    for number, each in enumerate(rounds, LEFT_OUT):
        told = "; ".join(
            f"{name}: {part.tokens:,} tokens, steps {part.inner_s:.2f}, "
            f"waited {part.waited_s:.2f}, exchange {part.exchanged_s:.2f}, "
            f"first step {part.began_s:+.2f}"
            for name, part in each.items()
        )
        print(f"  round {number}, s: {told}")
    every_part = [part for each in rounds for part in each.values()]
    exchange_s = mean(part.exchanged_s for part in every_part)
    waited_s = mean(part.waited_s for part in every_part)
    print(
        f"  blocking: {100 * share_of_inner(rounds):.1f} % of the islands' sum within their steps; "
        f"a round waits {waited_s:.2f} s for the slower island, {exchange_s:.2f} s for the exchange"
    )
    return speed(rounds)


def print_overlapped(on: Wired, told: Document) -> tuple[float, float]:
    """Print the same of islands that train on while the ways are on their way.

    Returns their tokens/s, and what workers have of a processor meanwhile.
    """
    line = [*on.recorded().outer_branch().values()]
    rounds = [taken for taken in line[LEFT_OUT:] if taken.steps][:-LAST]
    for taken in line:
        for island, why in taken.left_out.items():
            print(f"  outer step {taken.number} without {island}: {why}", flush=True)
    found = stretches(on.heard(), on.islands(), rounds, SEQ_LEN)
    for name, each in found.items():
        print(
            f"  {name}: {each.tokens:,} tokens in {each.span_s:.2f} s; with all steps as long as "
            f"those of the second half of a round it would be {each.calm_s:.2f} s"
        )
    print(f"  overlapped: {100 * share_of_calm(found):.1f} % of the islands' sum in calm steps")
    measured = sum(each.tokens / each.span_s for each in found.values())
    print_prediction(OVERLAPPED, measured, told)
    return measured, on.stamps.processors.share({name: each.span for name, each in found.items()})


def print_shares(every: int, passes: Sequence[Pass]) -> None:
    """Print the tokens/s of blocking and overlapped islands and of DDP beside those of each alone.

    passes: those so far; the shares are of their means
    """
    solo = fmean(sum(each.solo_speeds) for each in passes)
    blocking, overlapped, synchronous = (
        100 * fmean(values) / solo
        for values in zip(*((p.blocking, p.overlapped, p.synchronous) for p in passes), strict=True)
    )
    alone = " + ".join(f"{each:,.0f}" for each in passes[-1].solo_speeds)
    print(f"speed: each by itself without a network {alone} tokens/s; of all passes {solo:,.0f}")
    print(
        f"speed at 1 Gbit/s, H = {every}, int8, mean of {len(passes)}: blocking {blocking:.1f} % "
        f"{verdict(blocking >= SOLO_SHARE)} (goal {SOLO_SHARE:g}), overlapped {overlapped:.1f} % "
        f"{verdict(overlapped >= OVERLAPPED_SHARE)} (goal {OVERLAPPED_SHARE:g}); both by torch DDP "
        f"in fp32 over gloo {synchronous:.1f} %"
    )
    used = 100 * fmean(each.overlapped_share for each in passes)
    used_solo = 100 * fmean(run.processor_share for each in passes for run in each.solo)
    print(
        f"processors: workers have {used:.1f} % of one while overlapped, {used_solo:.1f} % by "
        f"themselves: {100 * used / used_solo:.1f} %, what exchanges take (ONLY=cost) among it",
        flush=True,
    )


def print_hashes(on: Wired) -> None:
    """Print whether all have the same weights and momentum."""
    equal, of = equal_digests([*on.heard().values()])
    reached = verdict(equal == of > 0)
    print(f"hashes: equal on all machines after {equal} of {of} outer steps {reached}")


def print_prediction(what: str, measured: float, told: Document) -> None:
    """Print the planner's tokens/s beside those measured."""
    predicted = told.get("predicted_tokens_per_s")
    if not predicted:
        print(f"prediction, {what}: none was told; measured {measured:,.0f} tokens/s")
        return
    apart = 100 * (predicted / measured - 1)
    print(
        f"prediction, {what}: {predicted:,.0f} tokens/s, measured {measured:,.0f}: {apart:+.0f} % "
        f"{verdict(abs(apart) <= PREDICTION)} (goal {PREDICTION:g})"
    )


def print_sent(on: Wired, idle: float) -> float:
    """Return and print the bytes that islands send per token.

    Counted from the middle of one round to that of another: nothing is exchanged then.
    """
    line = [*on.recorded().outer_branch().values()]
    first, last = line[LEFT_OUT].number, line[-1 - LAST].number
    tokens = line[last].total_tokens - line[first].total_tokens
    from_s, to_s = _middle_s(on, first), _middle_s(on, last)
    sent = on.stamps.sent_bytes(from_s, to_s) - idle * (to_s - from_s)
    sizes = sum(
        _size(on, way) for taken in line[first + 1 : last + 1] for way in taken.pseudo_gradients
    )
    print(
        f"  {last - first} rounds of {tokens:,} tokens: {sent:,.0f} bytes beyond idle, of which "
        f"pseudo-gradients are {sizes:,}"
    )
    return sent / tokens


def _middle_s(on: Wired, number: int) -> float:
    """Return when half of the time was over that followed an outer step."""
    said = [*on.heard().values()]
    return fmean(max(island.outer[n][1] for island in said) for n in (number, number + 1))


def _size(on: Wired, artifact: str) -> int:
    for machine in on.machines.machines:
        folder = machine.state_dir / "store" / artifact[:2] / artifact
        if size := sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()):
            return size
    return 0


async def _synchronous(on: Wired, idle: float) -> tuple[float, float]:
    """Train in each step together, in fp32; return the tokens/s and the bytes sent per token."""
    told = await _run(on, FIRST_COUNTED + COUNTED + 10, *_gang(on))
    at_s = next(iter(on.heard().values())).at_s
    from_s, to_s = at_s[FIRST_COUNTED], at_s[FIRST_COUNTED + COUNTED]
    sent = on.stamps.sent_bytes(from_s, to_s) - idle * (to_s - from_s)
    tokens = COUNTED * len(on.names) * BATCH * SEQ_LEN
    measured = tokens / (to_s - from_s)
    each_s = (to_s - from_s) / COUNTED
    print(
        f"  synchronous, {COUNTED} steps of {each_s:.2f} s: {sent:,.0f} bytes beyond idle for "
        f"{tokens:,} tokens"
    )
    print_prediction("synchronous", measured, told)
    return measured, sent / tokens


def print_ratio(passes: Sequence[Pass], every: int) -> None:
    """Print what islands send beside synchronous training."""
    sent = fmean(each.sent for each in passes)
    ddp = fmean(each.sent_synchronous for each in passes)
    ratio = ddp / sent
    print(
        f"bytes sent per token, H = {every}, int8: {sent:,.1f}, synchronous fp32 {ddp:,.1f}: "
        f"1/{ratio:,.0f} {verdict(ratio >= OF_DDP)} (goal 1/{OF_DDP:g})"
    )
