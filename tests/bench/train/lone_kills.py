"""kill -9 of the only rank of the only machine: how many finished steps it costs.

Owns the strikes, at random moments of a step. One run is struck again and again.
"""

import asyncio
import os
import random
import signal
import tempfile
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

from jupiterd.daemon.runtime.clock import now_s
from tests.support.daemons.cluster import Cluster, Daemon, Document, running
from tests.support.daemons.surroundings import own_network
from tests.support.daemons.training_runs import until_trained, write_letters

BATCH = 16
"""Sequences of 64 tokens in a step of the size 1m."""

STEPS_BETWEEN = 2
PATIENCE_S = 300.0


@dataclass(frozen=True)
class LoneStrike:
    """One strike, and what came of it."""

    step: int
    """The last that was seen before."""
    resumed_from: int
    every_steps: int
    """In so many steps one copy was made, as status said before."""
    trained_s: float
    """From the strike to the next step."""

    @property
    def lost(self) -> int:
        """Return how many finished steps were lost."""
        return max(0, self.step - self.resumed_from)


async def lone_kills(engine: str, times: int, chance: random.Random) -> AsyncGenerator[LoneStrike]:
    """Strike one run so many times."""
    with tempfile.TemporaryDirectory(prefix="jupiter-bench-") as name, own_network() as prefix:
        folder = Path(name)
        async with running([Daemon(folder, "node-1", prefix)]) as cluster:
            await cluster.meet()
            (daemon,) = cluster.daemons
            data = "--data", str(write_letters(folder)), "--model", "1m", "--seq-len", "64"
            batch = "--batch-size", str(BATCH), "--gradient-accumulation-steps", "1"
            sizes = *batch, "--max-steps", "1000000", "--engine", engine
            begun = await asyncio.to_thread(cluster.ctl, "train", "start", *data, *sizes)
            assert begun.returncode == 0, begun.stderr
            step = 3
            for _ in range(times):
                strike = await _strike(cluster, daemon, step + STEPS_BETWEEN, chance)
                yield strike
                step = strike.resumed_from


async def _strike(
    cluster: Cluster, daemon: Daemon, at_least: int, chance: random.Random
) -> LoneStrike:
    seen = await until_trained(cluster, daemon, at_least, PATIENCE_S)
    await asyncio.sleep(chance.random() * 1.5 / max(0.1, _rate(seen)))
    before = await until_trained(cluster, daemon, at_least, PATIENCE_S)
    at_s = now_s()
    os.kill(before["gang"][0]["pid"], signal.SIGKILL)
    async with asyncio.timeout(PATIENCE_S):
        while True:
            after = await until_trained(cluster, daemon, 0, PATIENCE_S)
            if after["epoch"] > before["epoch"] and after["step"] > after["resumed_from_step"]:
                break
    every = int(_training(before)["values"].get("snapshot_every_steps") or 0)
    return LoneStrike(before["step"], after["resumed_from_step"], every, now_s() - at_s)


def _training(shown: Document) -> Document:
    (row,) = (row for row in shown["phases"] if row["phase"] == "train")
    return row


def _rate(shown: Document) -> float:
    """Return steps per second; 1 as long as nobody knows."""
    return float(_training(shown)["rate"] or 1.0)
