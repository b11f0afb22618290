"""Prints what islands learn, beside training alone and training together, and their goals.

python -m tests.bench.islands [--only TEXT] [--steps N] [--seeds N] [--from-seed N] [--every N]
                              [--size 1m|3m] [--seq-len N] [--batch N] [--learning-rate R]
                              [--precision P]
                              [--sync-every N] [--network-rounds N] [--kill-every N]

Losses, unequal, sameness and hashes run in this process: they are those of the product's engines
and of its outer loop, on one thread. `network` and `kill` run real daemons on machines of their
own, whose links carry 1 Gbit/s, as root on Linux.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean

from jupiterd.cycle.architectures import parameter_count
from jupiterd.cycle.outer_orders import LAGS, rate_and_momentum
from jupiterd.cycle.plan import ModelShape
from jupiterd.gang.environment import worker_environment
from jupiterd.workers.islands.outer_step import OuterSettings
from tests.bench.figure import machine
from tests.bench.islands.contestants import EngineName, Outer, Race, Result, apart, synchronous
from tests.bench.islands.killed import print_killed
from tests.bench.islands.network import print_network
from tests.bench.islands.text import Text, packed
from tests.bench.train.single import preset
from tests.network.lab import why_there_is_no_lab
from tests.network.links import THROTTLE

ISLANDS = 4
MIXED: list[EngineName] = ["mlx", "torch", "torch", "torch"]
LATE = 10
"""The part of a round that an exchange takes, of islands that overlap: twice what is planned."""

SLOWER = 4

SAME_STEPS = 50
SAME_BATCH = 4
ROUNDS = 1000
TOLERANCE = 1e-4
CALM_RATE = 1e-4
"""At the size's own rate a last bit grows to hundredths of a nat in 50 steps, whoever trains: MLX
alone and torch alone differ by 3e-2 then, on the same batches."""


def nesterov_of(islands: int, every: int) -> Callable[[int], OuterSettings]:
    """Return what a leader decides for so many islands that exchange after so many steps."""
    return lambda before: OuterSettings(*rate_and_momentum("nesterov", islands, every, before))


def average(_: int) -> OuterSettings:
    """Return how plain averages are taken."""
    return OuterSettings(1.0, 0.0)


def shape_of(size: str, precision: str = "auto") -> ModelShape:
    """Return a preset, or one of three million parameters."""
    small = preset("1m")
    options = small.recipe.options.model_copy(update={"precision": precision})
    recipe = small.recipe.model_copy(update={"options": options})
    small = small.model_copy(update={"recipe": recipe})
    if size == "1m":
        return small
    wider = {"hidden": 224, "layers": 4, "ff": 672, "heads": 4, "kv_heads": 2, "head_dim": 56}
    return small.model_copy(update=wider)


def losses(race: Race, every: int) -> dict[str, float]:
    """Return bits per byte of every contestant."""
    nesterov = nesterov_of(ISLANDS, every)
    outer = Outer(every, nesterov)
    contestants = {
        "one island alone": lambda: synchronous(race, 1),
        f"{ISLANDS} in each step together": lambda: synchronous(race, ISLANDS),
        "islands, 1 MLX and 3 torch": lambda: _told(apart(race, MIXED, outer)),
        "islands that overlap": lambda: _told(
            apart(race, MIXED, replace(outer, late_steps=max(1, every // LATE)))
        ),
        "islands, plain average": lambda: _told(apart(race, MIXED, Outer(every, average))),
        "one island with the outer step": lambda: _told(
            apart(race, ["torch"], Outer(every, nesterov))
        ),
    }
    found: dict[str, float] = {}
    for name, run in contestants.items():
        found[name] = run()
        print(f"  seed {race.seed}: {name}: {found[name]:.4f} bits per byte", flush=True)
    return found


def _told(result: Result) -> float:
    equal = f"{result.equal_rounds} of {result.rounds} rounds end with equal weights"
    print(f"    {equal}; an island sent {result.sent_bytes:,} bytes", flush=True)
    return result.bits_per_byte


def print_losses(races: Sequence[Race], every: int) -> None:
    """Compare what is learned over some seeds."""
    all_of_them = [losses(race, every) for race in races]
    means = {name: mean(each[name] for each in all_of_them) for name in all_of_them[0]}
    alone, together, islands, overlapped, average, outer = means.values()
    gain = alone - together
    for name, value in means.items():
        print(f"losses: {name}: {value:.4f} bits per byte, mean of {len(races)} seeds")
    if gain <= 0:
        print("losses: training together gained nothing: too short a run to compare")
        return
    kept = 100 * (alone - islands) / gain
    print(
        f"losses: islands keep {kept:.0f} % of the gain {_verdict(kept >= 80)} (goal 80), plain "
        f"average {100 * (alone - average) / gain:.0f} %, one island with the outer step "
        f"{100 * (alone - outer) / gain:.0f} %"
    )
    kept = 100 * (alone - overlapped) / gain
    print(f"losses: islands that overlap keep {kept:.0f} % {_verdict(kept >= 80)} (goal 80)")
    for name, value in (("islands", islands), ("islands that overlap", overlapped)):
        over = 100 * (value / together - 1)
        print(f"losses: {name} end {over:+.2f} % from together {_verdict(over <= 1)} (goal 1)")


def print_unequal(races: Sequence[Race], every: int) -> None:
    """Let two slow islands train with two fast ones, and compare with the fast ones alone."""
    batch = races[0].batch_sequences
    fast = Outer(every, nesterov_of(2, every), shares=(batch, batch))
    slow = (batch // SLOWER,) * 2
    every_one = Outer(every, nesterov_of(ISLANDS, every), shares=(batch, batch, *slow))
    alone: list[float] = []
    together: list[float] = []
    for race in races:
        alone.append(apart(race, MIXED[:2], fast).bits_per_byte)
        together.append(apart(race, MIXED, every_one).bits_per_byte)
        print(f"  seed {race.seed}: two fast {alone[-1]:.4f}, all {together[-1]:.4f}", flush=True)
    gain = mean(alone) - mean(together)
    print(
        f"unequal: two fast islands {mean(alone):.4f}, with two of a {SLOWER}th of their speed "
        f"{mean(together):.4f} bits per byte in as many steps: {gain:+.4f} gained "
        f"{_verdict(gain >= 0)} (goal 0), mean of {len(races)} seeds"
    )


def print_sameness(text: Text, shape: ModelShape) -> None:
    """Feed an MLX and a torch island the same batches, and compare with one torch process."""
    race = Race(shape, text, SAME_STEPS, SAME_BATCH, 1, CALM_RATE)
    alone: list[float] = []
    both: list[float] = []
    synchronous(race, 1, lambda _, loss: alone.append(loss))
    outer = Outer(1, average, "fp32", same_batches=True)
    apart(race, ["mlx", "torch"], outer, lambda _, loss: both.append(loss))
    worst = max(abs(a - b) for a, b in zip(alone, both, strict=True))
    print(
        f"sameness: an MLX and a torch island, the same batches, every step, fp32, average: at "
        f"most {worst:.1e} nats from one torch process over {SAME_STEPS} steps "
        f"{_verdict(worst <= TOLERANCE)} (goal {TOLERANCE:.0e})"
    )


def print_hashes(text: Text, shape: ModelShape, rounds: int) -> None:
    """Compare weights and momentum of MLX and torch islands after many rounds of one step."""
    race = Race(shape, text, rounds, 1, 1)
    result = apart(race, ["mlx", "torch"], Outer(1, nesterov_of(2, 1)))
    told = f"{result.equal_rounds} of {result.rounds} rounds"
    reached = _verdict(result.equal_rounds == result.rounds)
    print(f"hashes: equal on an MLX and a torch island after {told} {reached}")


def print_wired(shape: ModelShape, only: str, every: int, rounds: int, kill_every: int) -> None:
    """Let islands train on machines of their own."""
    if missing := why_there_is_no_lab((THROTTLE,)):
        print(f"network, kill: not measured: {missing}")
        return
    if only in "network":
        asyncio.run(print_network(shape, every, rounds))
    if only in "kill":
        for sync in LAGS:
            asyncio.run(print_killed(preset("1m"), kill_every, sync))


def _verdict(is_reached: bool) -> str:
    return "[reached]" if is_reached else "[MISSED]"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="figures whose name holds this text")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--from-seed", type=int, default=1)
    parser.add_argument("--every", type=int, default=50, help="steps between two exchanges")
    parser.add_argument("--batch", type=int, default=4, help="sequences of an island and step")
    parser.add_argument("--learning-rate", type=float, help="of all; left out: the size's own")
    parser.add_argument("--precision", default="auto", help="of torch, such as bf16")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--sync-every", type=int, default=100, help="the same over a network")
    parser.add_argument("--network-rounds", type=int, default=2, help="beside the first; full: 10")
    parser.add_argument("--kill-every", type=int, default=20, help="the same, for kill; full: 100")
    parser.add_argument("--size", choices=("1m", "3m"), default="3m")
    parser.add_argument("--seq-len", type=int, default=256)
    chosen = parser.parse_args()
    shape = shape_of(chosen.size, chosen.precision)
    shape = shape.model_copy(update={"seq_len": chosen.seq_len})
    print(machine())
    print(f"  {parameter_count(shape):,} parameters, {ISLANDS} islands of {chosen.batch} sequences")
    if any(chosen.only in name for name in ("network", "kill")):
        rounds, kill_every = chosen.network_rounds, chosen.kill_every
        print_wired(shape, chosen.only, chosen.sync_every, rounds, kill_every)
    if not any(chosen.only in name for name in ("sameness", "hashes", "losses", "unequal")):
        return
    with tempfile.TemporaryDirectory() as folder:
        text = packed(Path(folder) / "shards", shape)
        print(f"  {text.shards.index.tokens:,} tokens of this Python's library")
        if chosen.only in "sameness":
            print_sameness(text, shape)
        if chosen.only in "hashes":
            print_hashes(text, shape, chosen.rounds)
        races = [
            Race(shape, text, chosen.steps, chosen.batch, seed, chosen.learning_rate)
            for seed in range(chosen.from_seed, chosen.from_seed + chosen.seeds)
        ]
        if chosen.only in "unequal":
            print_unequal(races, chosen.every)
        if chosen.only in "losses":
            print_losses(races, chosen.every)


def with_blas() -> None:
    """Begin anew with what MLX multiplies matrices with on Linux; see `worker_environment`."""
    wanted = worker_environment("train_mlx", {"engine": "mlx", "threads": 1})
    if wanted.get("LD_PRELOAD", "") != os.environ.get("LD_PRELOAD", ""):
        os.execve(
            sys.executable, [sys.executable, "-m", "tests.bench.islands", *sys.argv[1:]], wanted
        )


with_blas()
main()
