"""Prints what islands learn, beside training alone and training together, and their goals.

python -m tests.bench.islands [--only TEXT] [--steps N] [--seeds N] [--from-seed N] [--every N]
                              [--size 1m|3m|3m-wide|tiny] [--seq-len N] [--batch N]
                              [--learning-rate R] [--precision P] [--compile on]
                              [--keep FOLDER] [--who TEXT]...
                              [--muon-rate R] [--share S]
                              [--sync-every N] [--network-machines N] [--network-rounds N]
                              [--network-passes N] [--kill-every N] [--mbit N]

Losses, unequal, sameness, hashes and cost run in this process: they are those of the product's
engines and of its outer loop, on one thread; the last three in fp32. `network` and `kill` run real
daemons on machines of their own, whose links carry 1 Gbit/s, as root on Linux; so does `adapters`,
with a model that people have, over links of 20 Mbit/s.

With --keep, losses can be measured in pieces: what is found in the folder isn't measured again, and
the table is of all that is there. --who none only prints it.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean

from jupiterd.cluster.links.allreduce_cost import FEWEST_INNER_STEPS
from jupiterd.cycle.islands.outer_orders import AVERAGE, LAGS
from jupiterd.cycle.training.architectures import parameter_count
from jupiterd.cycle.training.engine_options import Switch
from jupiterd.cycle.training.plan import ModelShape
from jupiterd.processes.environment import worker_environment
from tests.bench.figure import machine
from tests.bench.islands.adapters import print_adapters
from tests.bench.islands.contestants import Outer, Race, apart, synchronous
from tests.bench.islands.cost import print_cost
from tests.bench.islands.kept import KeptResults
from tests.bench.islands.killed import print_killed
from tests.bench.islands.losses import (
    ALONE,
    ISLANDS,
    MIXED,
    contestants,
    print_losses,
    verdict,
)
from tests.bench.islands.network import print_network
from tests.bench.islands.recipes import GOAL_SHARE, Optimizer, print_recipes
from tests.bench.islands.text import Text, packed
from tests.bench.train.single import preset
from tests.support.network.lab import why_there_is_no_lab
from tests.support.network.links import THROTTLE

SIZES: Mapping[str, Mapping[str, int]] = {
    "1m": {},
    "3m": {"hidden": 224, "layers": 4, "ff": 672, "heads": 4, "kv_heads": 2, "head_dim": 56},
    "3m-wide": {"hidden": 256, "ff": 1152, "vocab_size": 1024},
    "tiny": {"hidden": 64, "layers": 2, "ff": 192, "head_dim": 32, "vocab_size": 1024},
}
"""What differs from the preset of a million parameters. Of those of three million, a CPU trains the
wide one fastest: few words, few layers, little attention."""

MICRO_BATCH_TOKENS = 2048

SLOWER = 4

SAME_STEPS = 50
SAME_BATCH = 4
ROUNDS = 1000
COST_STEPS, COST_BATCH = 1000, 8
"""As in a run over a network: what is measured is at its beginning."""

TOLERANCE = 1e-4
CALM_RATE = 1e-4
"""At the size's own rate a last bit grows to hundredths of a nat in 50 steps, whoever trains: MLX
alone and torch alone differ by 3e-2 then, on the same batches."""


def shape_of(size: str, seq_len: int, precision: str, compiles: Switch) -> ModelShape:
    """Return a preset, or a shape made from it, as a CPU trains it fastest."""
    small = preset("1m").model_copy(update={"seq_len": seq_len, **SIZES[size]})
    how = {"precision": precision, "compile": compiles}
    recipe = small.recipe.model_copy(
        update={
            "options": small.recipe.options.model_copy(update=how),
            "micro_batch_sequences": max(1, MICRO_BATCH_TOKENS // seq_len),
        }
    )
    return small.model_copy(update={"recipe": recipe})


def print_unequal(races: Sequence[Race], every: int) -> None:
    """Let two slow islands train with two fast ones, and compare with the fast ones alone."""
    batch = races[0].batch_sequences
    fast = Outer(every, shares=(batch, batch))
    slow = (batch // SLOWER,) * 2
    every_one = Outer(every, shares=(batch, batch, *slow))
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
        f"{verdict(gain >= 0)} (goal 0), mean of {len(races)} seeds"
    )


def print_sameness(text: Text, shape: ModelShape) -> None:
    """Feed an MLX and a torch island the same batches, and compare with one torch process."""
    race = Race(shape, text, SAME_STEPS, SAME_BATCH, 1, CALM_RATE)
    alone: list[float] = []
    both: list[float] = []
    synchronous(race, 1, lambda _, loss: alone.append(loss))
    outer = Outer(1, AVERAGE, "fp32", same_batches=True)
    apart(race, ["mlx", "torch"], outer, lambda _, loss: both.append(loss))
    worst = max(abs(a - b) for a, b in zip(alone, both, strict=True))
    print(
        f"sameness: an MLX and a torch island, the same batches, every step, fp32, average: at "
        f"most {worst:.1e} nats from one torch process over {SAME_STEPS} steps "
        f"{verdict(worst <= TOLERANCE)} (goal {TOLERANCE:.0e})"
    )


def print_hashes(text: Text, shape: ModelShape, rounds: int) -> None:
    """Compare weights and momentum of MLX and torch islands after many rounds of one step."""
    race = Race(shape, text, rounds, 1, 1)
    result = apart(race, ["mlx", "torch"], Outer(1))
    told = f"{result.equal_rounds} of {result.rounds} rounds"
    reached = verdict(result.equal_rounds == result.rounds)
    print(f"hashes: equal on an MLX and a torch island after {told} {reached}")


def print_wired(shape: ModelShape, chosen: argparse.Namespace) -> None:
    """Let islands train on machines of their own."""
    if missing := why_there_is_no_lab((THROTTLE,)):
        print(f"network, kill, adapters: not measured: {missing}")
        return
    if chosen.only in "network":
        often = chosen.network_rounds, chosen.network_passes
        asyncio.run(print_network(shape, chosen.network_machines, chosen.sync_every, *often))
    if chosen.only in "kill":
        for sync in LAGS:
            asyncio.run(print_killed(preset("1m"), chosen.kill_every, sync))
    if chosen.only in "adapters":
        often = chosen.network_rounds, chosen.network_passes
        asyncio.run(print_adapters(chosen.mbit, *often))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="figures whose name holds this text")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--from-seed", type=int, default=1)
    parser.add_argument(
        "--every", type=int, default=FEWEST_INNER_STEPS, help="steps between two exchanges"
    )
    parser.add_argument("--batch", type=int, default=16, help="sequences of an island and step")
    parser.add_argument("--learning-rate", type=float, default=0.001, help="the same for all")
    parser.add_argument("--precision", default="bf16", help="of torch; auto: fp32 on a CPU")
    parser.add_argument("--compile", choices=("auto", "on"), default="on", help="of torch")
    parser.add_argument("--keep", type=Path, help="folder of results; others are measured")
    parser.add_argument("--who", action="append", help="parts of the names of whom to measure")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--sync-every", type=int, default=100, help="the same over a network")
    parser.add_argument("--network-machines", type=int, default=2, help="one on MLX; full: 4")
    parser.add_argument("--network-rounds", type=int, default=2, help="beside the first; full: 10")
    parser.add_argument("--network-passes", type=int, default=3, help="over all layouts")
    parser.add_argument("--mbit", type=int, default=20, help="of a link, for adapters")
    parser.add_argument("--kill-every", type=int, default=20, help="the same, for kill; full: 100")
    parser.add_argument("--size", choices=tuple(SIZES), default="3m-wide")
    parser.add_argument("--seq-len", type=int, default=64)
    parser.add_argument("--muon-rate", type=float, default=0.002, help="for recipe: Muon's")
    parser.add_argument("--share", type=float, default=GOAL_SHARE, help="of steps, for recipe")
    chosen = parser.parse_args()
    exact = shape_of(chosen.size, chosen.seq_len, "auto", "auto")
    shape = shape_of(chosen.size, chosen.seq_len, chosen.precision, chosen.compile)
    print(machine())
    print(f"  {parameter_count(shape):,} parameters, {ISLANDS} islands of {chosen.batch} sequences")
    if any(chosen.only in name for name in ("network", "kill", "adapters")):
        print_wired(exact, chosen)
    learned = ("sameness", "hashes", "cost", "losses", "unequal", "recipe")
    if not any(chosen.only in name for name in learned):
        return
    with tempfile.TemporaryDirectory() as folder:
        text = packed(Path(folder) / "shards", shape)
        print(f"  {text.shards.index.tokens:,} tokens of this Python's library")
        if chosen.only in "sameness":
            print_sameness(text, exact)
        if chosen.only in "hashes":
            print_hashes(text, exact, chosen.rounds)
        if chosen.only in "cost":
            print_cost(Race(exact, text, COST_STEPS, COST_BATCH, 1), chosen.sync_every)
        races = [
            Race(shape, text, chosen.steps, chosen.batch, seed, chosen.learning_rate)
            for seed in range(chosen.from_seed, chosen.from_seed + chosen.seeds)
        ]
        if chosen.only in "unequal":
            print_unequal(races, chosen.every)
        if chosen.only in "losses":
            print_losses(races, chosen.every, KeptResults(chosen.keep), chosen.who or ("",))
        if chosen.only and chosen.only in "recipe":
            names = chosen.who or [ALONE]
            who = [c for c in contestants(chosen.every) if any(part in c.name for part in names)]
            rates: Mapping[Optimizer, float] = {
                "adamw": chosen.learning_rate,
                "muon": chosen.muon_rate,
            }
            print_recipes(races, rates, chosen.share, KeptResults(chosen.keep), who)


def with_blas() -> None:
    """Begin anew with what MLX multiplies matrices with on Linux; see `worker_environment`."""
    wanted = worker_environment("train_mlx", {"engine": "mlx", "threads": 1})
    if wanted.get("LD_PRELOAD", "") != os.environ.get("LD_PRELOAD", ""):
        os.execve(
            sys.executable, [sys.executable, "-m", "tests.bench.islands", *sys.argv[1:]], wanted
        )


with_blas()
main()
