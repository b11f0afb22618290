"""Islands of real daemons over links of 1 Gbit/s: how fast, how much is sent, the same weights.

Owns these figures. Doesn't know how machines are made, or when what was said.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from statistics import mean, median

from jupiterd.cluster.facts import CheckpointCommitted
from jupiterd.cycle.plan import ModelShape
from tests.bench.artifacts.stations import GBIT
from tests.bench.islands.rounds import Part, equal_digests, parts, share_of_solo
from tests.bench.islands.wired import BATCH, SEQ_LEN, Wired, wired
from tests.e2e.cluster import Document

IDLE_S = 8.0
FIRST_COUNTED = 10
"""Of the steps of synchronous training."""

COUNTED = 30
LEFT_OUT = 1
"""Rounds: they begin apart, and nobody knows yet how fast anybody is."""

SOLO_SHARE, OF_DDP, PREDICTION = 95.0, 200.0, 20.0
LONGEST_S = 1200.0

Rounds = Sequence[Mapping[str, Part]]


async def print_network(shape: ModelShape, every: int, rounds: int) -> None:
    """Let an MLX and a torch island train on machines of their own, and print what came of it."""
    async with wired(2, GBIT, shape) as on:
        idle = await _idle(on)
        print(f"  idle, both machines send {idle / 1e3:,.1f} kB/s", flush=True)
        await on.start(every * (rounds + LEFT_OUT), *_islands("mlx:m1 torch:m2", every))
        told = await on.until_over(LONGEST_S)
        of_round = _rounds(on)
        print_speed(of_round, every)
        print_prediction(of_round, told)
        equal, of = equal_digests([*on.heard().values()])
        reached = verdict(equal == of > 0)
        print(f"hashes: equal on both machines after {equal} of {of} outer steps {reached}")
        sent = print_sent(on, idle)
        print_ratio(sent, await _synchronous(on, idle), every)


def verdict(is_reached: bool) -> str:
    """Return how a goal fared."""
    return "[reached]" if is_reached else "[MISSED]"


def _islands(who: str, every: int) -> tuple[str, ...]:
    return "--islands", who, "--sync-every", str(every), "--ways", "int8"


async def _idle(on: Wired) -> float:
    """Return the bytes per second that machines send while they train nothing."""
    began_s = time.monotonic()
    await asyncio.sleep(IDLE_S)
    return on.stamps.sent_bytes(began_s, time.monotonic() - 1.0) / (IDLE_S - 1.0)


def _rounds(on: Wired) -> Rounds:
    line = [*on.recorded().outer_line().values()]
    islands = on.islands()
    said = on.heard()
    assert {*said} == {*islands}, f"heard of {[*said]}"
    return [parts(said, islands, taken, SEQ_LEN) for taken in line[LEFT_OUT:-1]]


def print_speed(rounds: Rounds, every: int) -> None:
    """Print the speed over whole rounds beside the sum of the islands' within their steps."""
    for number, each in enumerate(rounds, LEFT_OUT):
        told = "; ".join(
            f"{name}: {part.tokens:,} tokens, steps {part.inner_s:.2f}, "
            f"waited {part.waited_s:.2f}, exchange {part.exchanged_s:.2f}, first step {part.began_s:+.2f}"
            for name, part in each.items()
        )
        print(f"  round {number}, s: {told}")
    every_part = [part for each in rounds for part in each.values()]
    share = 100 * share_of_solo(rounds)
    exchange_s = mean(part.exchanged_s for part in every_part)
    waited_s = mean(part.waited_s for part in every_part)
    print(
        f"speed at 1 Gbit/s, H = {every}, int8, blocking: {share:.1f} % of the islands' sum within "
        f"their steps {verdict(share >= SOLO_SHARE)} (goal {SOLO_SHARE:g}); a round waits "
        f"{waited_s:.2f} s for the slower island and {exchange_s:.2f} s for the exchange"
    )


def print_prediction(rounds: Rounds, told: Document) -> None:
    """Print the planner's tokens/s beside those that were measured."""
    predicted = (told.get("values") or told).get("predicted_tokens_per_s")
    span_s = sum(mean(part.span_s for part in each.values()) for each in rounds)
    measured = sum(part.tokens for each in rounds for part in each.values()) / span_s
    if not predicted:
        print(f"prediction: none is shown for islands; measured {measured:,.0f} tokens/s")
        return
    apart = 100 * (predicted / measured - 1)
    print(
        f"prediction: {predicted:,.0f} tokens/s, measured {measured:,.0f}: {apart:+.0f} % "
        f"{verdict(abs(apart) <= PREDICTION)} (goal {PREDICTION:g})"
    )


def print_sent(on: Wired, idle: float) -> tuple[float, float]:
    """Return and print the bytes sent per token: for the exchange, and with checkpoints' copies."""
    line = [*on.recorded().outer_line().values()]
    said = on.heard()
    counted = line[LEFT_OUT:]
    from_s, to_s = (
        min(each.outer[taken.number][1] for each in said.values())
        for taken in (counted[0], counted[-1])
    )
    sent = on.stamps.sent_bytes(from_s, to_s) - idle * (to_s - from_s)
    tokens = counted[-1].total_tokens - counted[0].total_tokens
    ways = sum(_size(on, way) for taken in counted[1:] for way in taken.ways)
    copies = _copied(on, from_s, to_s)
    print(
        f"  {len(counted) - 1} rounds of {tokens:,} tokens: {sent:,.0f} bytes beyond idle; ways "
        f"{ways:,}, checkpoints' copies {copies:,}"
    )
    return (sent - copies) / tokens, sent / tokens


def _copied(on: Wired, from_s: float, to_s: float) -> int:
    """Return the bytes of the checkpoints that were fetched meanwhile."""
    cycles = on.machines[0].state().cycles.values()
    made = {
        fact.artifact[:8]: fact.artifact
        for cycle in cycles
        for fact in cycle.line()
        if isinstance(fact, CheckpointCommitted)
    }
    fetched = [
        line.text.partition("artifact=")[2].strip()
        for line in on.stamps.said
        if " artifact_fetched " in line.text and from_s <= line.at_s <= to_s
    ]
    return sum(_size(on, made[name]) for name in fetched if name in made)


def _size(on: Wired, artifact: str) -> int:
    for machine in on.machines.machines:
        folder = machine.state_dir / "store" / artifact[:2] / artifact
        if size := sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()):
            return size
    return 0


async def _synchronous(on: Wired, idle: float) -> float:
    """Train in each step together, in fp32; return the bytes sent per token."""
    steps = FIRST_COUNTED + COUNTED + 10
    await on.start(steps, "--islands", "off", "--engine", "torch", "--nodes", "m1,m2")
    await on.until_over(LONGEST_S)
    at_s = next(iter(on.heard().values())).at_s
    from_s, to_s = at_s[FIRST_COUNTED], at_s[FIRST_COUNTED + COUNTED]
    sent = on.stamps.sent_bytes(from_s, to_s) - idle * (to_s - from_s)
    tokens = COUNTED * 2 * BATCH * SEQ_LEN
    each_s = median(at_s[n + 1] - at_s[n] for n in range(FIRST_COUNTED, FIRST_COUNTED + COUNTED))
    print(
        f"  synchronous, {COUNTED} steps of {each_s:.2f} s: {sent:,.0f} bytes beyond idle for "
        f"{tokens:,} tokens"
    )
    return sent / tokens


def print_ratio(islands: tuple[float, float], ddp: float, every: int) -> None:
    """Print what islands send beside synchronous training."""
    exchange, everything = islands
    ratio = ddp / exchange
    print(
        f"bytes sent per token, H = {every}, int8: {exchange:,.1f}, synchronous fp32 {ddp:,.1f}: "
        f"1/{ratio:,.0f} {verdict(ratio >= OF_DDP)} (goal 1/{OF_DDP:g}); with the second places of "
        f"checkpoints {everything:,.1f}, 1/{ddp / everything:,.0f}"
    )
