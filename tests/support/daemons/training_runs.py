"""Trainings that end-to-end tests start: the text, two daemons that train it, and how far they are.

Owns that set-up. Doesn't know what a test wants to see of it.
"""

import asyncio
import random
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.daemons.cluster import NAMES, Cluster, Daemon, Document, running
from tests.support.daemons.surroundings import own_network

WORDS = ("the", "queen", "walks", "over", "green", "hills", "and", "sees", "a", "wide", "river")
WAIT_S = 300


def write_letters(folder: Path, seed: int = 5, lines: int = 40) -> Path:
    """Write sixty letters of so many lines that can be learned from."""
    chance = random.Random(seed)
    letters = folder / "letters"
    letters.mkdir()
    for number in range(60):
        text = [" ".join(chance.choices(WORDS, k=12)) for _ in range(lines)]
        (letters / f"letter-{number:02}.txt").write_text("\n".join(text))
    return letters


@dataclass(frozen=True)
class TwoDaemons:
    """Two that have met."""

    cluster: Cluster
    leader: Daemon
    survivor: Daemon
    """The other one: tests end the leader."""

    def train(self, letters: Path, *options: str) -> "Training":
        """Start a run of the size 1m at the survivor, and follow it to its end."""
        command = ("train", "start", "--data", str(letters), "--model", "1m", "--seq-len", "64")
        waits = ("--wait", "--timeout", str(WAIT_S))
        return asyncio.ensure_future(
            asyncio.to_thread(
                self.cluster.ctl,
                *(*command, *options, *waits),
                daemon=self.survivor,
                timeout_s=WAIT_S + 20,
            )
        )


Training = asyncio.Future[subprocess.CompletedProcess[str]]
"""What a run prints, once it is over."""


@asynccontextmanager
async def two_daemons(folder: Path) -> AsyncGenerator[TwoDaemons]:
    """Start two daemons in a network of their own, and wait until one leads."""
    with own_network() as prefix:
        daemons = [Daemon(folder, name, prefix) for name in NAMES[:2]]
        async with running(daemons) as cluster:
            (view, *_) = await cluster.meet()
            leader = cluster.by_id(view["cluster"]["leader"], view)
            survivor = next(daemon for daemon in daemons if daemon is not leader)
            yield TwoDaemons(cluster, leader, survivor)


async def until_trained(
    cluster: Cluster, asked: Daemon, at_least: int, timeout_s: float
) -> Document:
    """Wait until a run has got so far; return what is shown of it."""
    async with asyncio.timeout(timeout_s):
        while True:
            train = ((await asked.ask("train")) or {}).get("train") or {}
            assert train.get("state") != "failed", cluster.failure_text(str(train["failure"]))
            if train.get("step", 0) >= at_least:
                return train
            await asyncio.sleep(0.2)
