"""Prints how gangs heal and what watching them costs, beside the goals.

python -m tests.bench.train [--only TEXT] [--trials N] [--seed N] [--size SIZE]
"""

import argparse
import asyncio
import random
from collections.abc import Callable

from tests.bench.figure import Figure, Goal, line, machine
from tests.bench.train.cut.partition_links import print_links
from tests.bench.train.fits import MEGABYTES, print_fits
from tests.bench.train.freezes import freezes
from tests.bench.train.gang_speed import ENCRYPTED, FILTERED, speeds
from tests.bench.train.gangs import without_name_server
from tests.bench.train.joins import joins
from tests.bench.train.kills import Struck, kills
from tests.bench.train.lone_kills import LoneStrike, lone_kills
from tests.bench.train.losses import CABLES, Loss, losses
from tests.bench.train.memory_peaks import print_peaks
from tests.bench.train.micro_batches import print_micro_batches
from tests.bench.train.partition_speed import print_speeds
from tests.bench.train.rivals.lora import print_lora
from tests.bench.train.rivals.tuning import print_tuning
from tests.bench.train.round_bytes import print_round_bytes
from tests.bench.train.supervision import supervision
from tests.bench.train.vocabulary import print_vocabularies

GOALS = {
    "torch": (Goal(0.99, 2.0),),
    "mlx": (Goal(0.5, 2.0), Goal(0.99, 4.0)),
}
NAMELESS = {"torch": (Goal(0.5, 0.6),), "mlx": (Goal(0.5, 2.0),)}
ADAPTER = (Goal(0.5, 1.0),)
SOON_S = 1.5
"""Between two kills where many are wanted."""
TOLD = (Goal(0.99, 0.25),)
FROZEN_TOLD = (Goal(0.99, 2.5),)
FROZEN = (Goal(0.99, 5.0),)
JOINED = (Goal(0.5, 2.0),)
LOST_STEPS = (Goal(0.99, 1.0),)
LOST_ALONE = (Goal(1.0, 1.0),)
SUPERVISED = (Goal(0.5, 2.0),)
SUPERVISED_TRIALS = 3
GUARDS = {
    "encryption": ("an encrypted gang", ENCRYPTED, Goal(0.5, 50.0, at_least=True)),
    "filter": ("a gang behind the filter", FILTERED, Goal(0.5, 97.0, at_least=True)),
}
"""What guards a gang at the cost of its speed: name -> words, how it trains, what is wanted."""
GUARDED_TRIALS = 3
TRIALS = 20


COSTS: dict[str, Callable[[str, int], None]] = {
    "vocabulary": lambda engine, _: print_vocabularies(engine),
    "micro batches": print_micro_batches,
    "tuning": print_tuning,
    "lora": print_lora,
}
"""What is measured in processes of its own: name -> what prints it of an engine."""


async def _never() -> float:
    raise AssertionError("figures of one gang are measured together")


async def print_kills(engine: str, trials: int, seed: int) -> None:
    """Strike one gang again and again; print each change, and both figures."""
    struck: list[Struck] = []
    async for strike in kills(engine, trials, random.Random(seed)):
        struck.append(strike)
        print(
            f"  told {strike.told_s:.2f}  trained {strike.trained_s:.2f}  "
            f"step {strike.step} -> {strike.resumed_from}  [{strike.change}]",
            flush=True,
        )
    told = Figure(f"kill -9 of a rank -> told, {engine}", "s", TOLD, _never)
    trained = Figure(f"kill -9 of a rank -> next step, {engine}", "s", GOALS[engine], _never)
    print(line(told, [strike.told_s for strike in struck]))
    print(line(trained, [strike.trained_s for strike in struck]))


async def print_adapter_kills(engine: str, trials: int, seed: int) -> None:
    """Strike a gang that trains an adapter; print how soon it goes on, and what that costs."""
    struck: list[Struck] = []
    async for strike in kills(engine, trials, random.Random(seed), pace_s=SOON_S, lora=True):
        struck.append(strike)
        told = f"trained {strike.trained_s:.2f}  step {strike.step} -> {strike.resumed_from}"
        print(f"  {told}  [{strike.change}]", flush=True)
    name = "kill -9 of a rank that trains an adapter"
    trained = Figure(f"{name} -> next step, {engine}", "s", ADAPTER, _never)
    lost = Figure(f"{name}: steps lost, {engine}", "steps", LOST_ALONE, _never)
    print(line(trained, [strike.trained_s for strike in struck]))
    print(line(lost, [max(0.0, strike.step - strike.resumed_from) for strike in struck]))


async def print_lone_kills(engine: str, trials: int, seed: int) -> None:
    """Strike the only rank of one machine again and again; print what each strike costs."""
    struck: list[LoneStrike] = []
    async for strike in lone_kills(engine, trials, random.Random(seed)):
        struck.append(strike)
        print(
            f"  step {strike.step} -> {strike.resumed_from}, a copy every {strike.every_steps}  "
            f"trained {strike.trained_s:.2f}",
            flush=True,
        )
    lost = Figure(f"kill -9 of a lone worker: steps lost, {engine}", "steps", LOST_ALONE, _never)
    print(line(lost, [float(strike.lost) for strike in struck]))


async def print_nameless(engine: str, trials: int, seed: int) -> None:
    """Strike a gang on machines of their own, where nobody answers who asks for names."""
    took: list[float] = []
    struck = kills(engine, trials, random.Random(seed), without_name_server, SOON_S)
    async for strike in struck:
        took.append(strike.trained_s)
        print(f"  trained {strike.trained_s:.2f}  [{strike.change}]", flush=True)
    name = f"kill -9 of a rank, no name server -> next step, {engine}"
    print(line(Figure(name, "s", NAMELESS[engine], _never), took))


async def print_guarded(engine: str, guard: str, trials: int, size: str) -> None:
    """Let a gang train with a guard and without it, by turns."""
    words, ways, goal = GUARDS[guard]
    shares: list[float] = []
    async for plain, guarded in speeds(engine, min(trials, GUARDED_TRIALS), size, ways):
        shares.append(guarded / plain * 100)
        told = f"{plain:,.0f} tokens/s without, {guarded:,.0f} with"
        print(f"  {told} {guard}: {guarded / plain:.3f}", flush=True)
    name = f"speed of {words} of two, {size}, {engine}"
    print(line(Figure(name, "% of one that isn't", (goal,), _never), shares))


async def print_freezes(engine: str, trials: int, seed: int) -> None:
    """Freeze a node of one gang again and again, and let it come back."""
    lost: list[Struck] = []
    stalls: list[float] = []
    async for loss, joined in freezes(engine, trials, random.Random(seed)):
        lost.append(loss)
        stalls.append(joined.change.phases["first_step_s"])
        print(
            f"  told {loss.told_s:.2f}  trained {loss.trained_s:.2f}  "
            f"step {loss.step} -> {loss.resumed_from}  [{loss.change}]\n"
            f"  back {joined.trained_s:.2f}  step {joined.step} -> {joined.resumed_from}  "
            f"[{joined.change}]",
            flush=True,
        )
    told = Figure(f"node frozen -> declared dead, {engine}", "s", FROZEN_TOLD, _never)
    trained = Figure(f"node frozen -> next step, {engine}", "s", FROZEN, _never)
    stall = Figure(f"a node joins: stall of the others, {engine}", "s", JOINED, _never)
    print(line(told, [loss.told_s for loss in lost]))
    print(line(trained, [loss.trained_s for loss in lost]))
    print(line(stall, stalls))


async def print_losses(loss: Loss, engine: str, trials: int, seed: int) -> None:
    """Let one gang lose a member again and again."""
    struck: list[Struck] = []
    async for strike in losses(loss, engine, trials, random.Random(seed)):
        struck.append(strike)
        print(
            f"  told {strike.told_s:.2f}  trained {strike.trained_s:.2f}  "
            f"step {strike.step} -> {strike.resumed_from}  [{strike.change}]",
            flush=True,
        )
    if loss is Loss.FREEZE or loss in CABLES:
        told = Figure(f"{loss} -> declared dead, {engine}", "s", FROZEN_TOLD, _never)
        print(line(told, [strike.told_s for strike in struck]))
    trained = Figure(f"{loss} -> next step, {engine}", "s", FROZEN, _never)
    lost = Figure(f"{loss}: steps lost, {engine}", "steps", LOST_STEPS, _never)
    print(line(trained, [strike.trained_s for strike in struck]))
    print(line(lost, [max(0.0, strike.step - strike.resumed_from) for strike in struck]))


async def print_joins(engine: str, trials: int, size: str) -> None:
    """Let a third node join a gang again and again, each time a new one."""
    stalls: list[float] = []
    async for joining in joins(engine, trials, size):
        stalls.append(joining.change.phases["first_step_s"])
        print(f"  [{joining.change}]  {joining.catch_up}", flush=True)
    name = f"a third node joins, {size}: stall of the others, {engine}"
    print(line(Figure(name, "s", JOINED, _never), stalls))


async def print_supervision(engine: str, trials: int) -> None:
    """Let one gang train undisturbed."""
    found = await supervision(engine, min(trials, SUPERVISED_TRIALS))
    for one in found:
        print(f"  {one.steps_per_s:.1f} steps/s")
    leader = Figure(f"supervision by the leader, {engine}", "% of a core", SUPERVISED, _never)
    follower = Figure(f"supervision by a follower, {engine}", "% of a core", SUPERVISED, _never)
    print(line(leader, [one.leader_percent for one in found]))
    print(line(follower, [one.follower_percent for one in found]))


STRUCK = {
    "kill": print_kills,
    "alone": print_lone_kills,
    "nameless": print_nameless,
    "lora kill": print_adapter_kills,
    "freeze": print_freezes,
}
"""What is measured of a gang that is struck again and again: name -> what prints it."""


def print_plans(only: str) -> None:
    """Print what becomes of plans: of steps that follow the data, of memory, and of exchanges."""
    if only in "fits":
        print_fits(MEGABYTES)
    if only in "memory":
        print_peaks()
    if only in "lora bytes":
        print_round_bytes()
    if only in "partition" or only in "shards":
        print_speeds()
        print_links()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="figures whose name holds this text")
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--size", default="1m", help="of the model that a third node joins")
    chosen = parser.parse_args()
    print(machine())
    print_plans(chosen.only)
    for engine in ("torch", "mlx"):
        print_engine(engine, chosen)


def print_engine(engine: str, chosen: argparse.Namespace) -> None:
    """Print what was chosen of one engine's figures."""
    for name, printed in COSTS.items():
        if chosen.only in f"{name} {engine}":
            printed(engine, chosen.trials)
    struck = engine, chosen.trials, chosen.seed
    for name, print_struck in STRUCK.items():
        if chosen.only in f"{name} {engine}":
            asyncio.run(print_struck(*struck))
    print_guards(engine, chosen)
    if chosen.only in f"join {engine}":
        asyncio.run(print_joins(engine, chosen.trials, chosen.size))
    for loss in Loss:
        if chosen.only in f"{loss} {engine}":
            asyncio.run(print_losses(loss, *struck))
    if chosen.only in f"supervision {engine}":
        asyncio.run(print_supervision(engine, chosen.trials))


def print_guards(engine: str, chosen: argparse.Namespace) -> None:
    """Print what guards of a gang cost."""
    for guard in GUARDS:
        if chosen.only in f"{guard} {engine}":
            asyncio.run(print_guarded(engine, guard, chosen.trials, chosen.size))


main()
