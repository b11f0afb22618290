"""A rank tries micro batches before its first step, says so, and remembers what it has found."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from jupiterd.protocol.preparing_stage import TRYING, preparing_words
from tests.support.daemons.cluster import Cluster, Daemon, running
from tests.support.daemons.surroundings import own_network
from tests.support.daemons.training_runs import until_trained, write_letters

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.timeout(300)]

TRYING_DAEMON = (sys.executable, Path(__file__).parent / "trying_daemon.py")
LOOK_S, TIMEOUT_S = 0.1, 120.0
BATCH = 32


async def until_it_tries(cluster: Cluster, daemon: Daemon) -> dict[str, Any]:
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            train = ((await daemon.ask("train")) or {}).get("train") or {}
            assert train.get("state") != "failed", cluster.failure_text(str(train.get("failure")))
            for phase in train.get("phases") or []:
                if (told := phase.get("preparing")) and told["stage"] == TRYING:
                    return told
            await asyncio.sleep(LOOK_S)


async def until_said_of_micro_batches(daemon: Daemon, attempt: int) -> str:
    """Return what a rank's log has of them, once it has it."""
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            for log in (daemon.state_dir / "logs").glob(f"*-train-{attempt}-0-train.log"):
                for line in log.read_text().splitlines():
                    if line.startswith("Micro batches of "):
                        return line
            await asyncio.sleep(LOOK_S)


async def test_a_rank_tries_micro_batches_and_its_next_attempt_knows_the_best(
    tmp_path: Path,
) -> None:
    start = ("train", "start", "--data", str(write_letters(tmp_path)), "--model", "1m")
    sizes = ("--seq-len", "64", "--max-steps", "100000", "--engine", "torch")
    with own_network() as prefix:
        daemon = Daemon(tmp_path, "node-1", prefix, command=TRYING_DAEMON)
        async with running([daemon]) as cluster:
            await cluster.meet()
            started = cluster.ctl(*start, *sizes)
            assert started.returncode == 0, started.stderr
            told = await until_it_tries(cluster, daemon)
            assert told["detail"].endswith(f" of {BATCH}")
            assert preparing_words(told).startswith(f"trying micro batches: {told['detail']}, ")
            before = await until_trained(cluster, daemon, 3, TIMEOUT_S)
            kept = json.loads((daemon.state_dir / "micro_batches.json").read_text())
            (choice,) = kept.values()
            assert (1 <= choice["micro_batch"] <= BATCH, choice["most"]) == (True, BATCH)
            assert choice["tokens_per_s"] > 0
            said = await until_said_of_micro_batches(daemon, 1)
            assert said.startswith(f"Micro batches of {choice['micro_batch']}: measured, ")
            os.kill(before["gang"][0]["pid"], signal.SIGKILL)
            said = await until_said_of_micro_batches(daemon, 2)
            assert said == f"Micro batches of {choice['micro_batch']}: as measured before"
