"""A member whose build trains no adapters: named before anything starts, left out of what runs."""

import asyncio
from pathlib import Path

import pytest

from tests.support.daemons.adapter_runs import ADAPTER, write_base
from tests.support.daemons.cluster import NAMES, Cluster, Daemon, running
from tests.support.daemons.earlier import installed, last_commit_without
from tests.support.daemons.surroundings import own_network
from tests.support.daemons.training_runs import until_trained, write_letters

OLDER = last_commit_without("jupiterd/daemon/planning/adapter_support.py")
"""It doesn't tell whether it trains adapters."""

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not OLDER, reason="that far back no history is here"),
]

WAIT_S = 120.0


async def test_it_is_named_by_train_start_and_joins_no_run_with_an_adapter(tmp_path: Path) -> None:
    older = installed(tmp_path / "older", OLDER)
    letters = write_letters(tmp_path)
    base = write_base(tmp_path, letters)
    run = ("train", "start", "--data", str(letters), "--model", str(base), *ADAPTER)
    run = (*run, "--seq-len", "64", "--batch-size", "2", "--gradient-accumulation-steps", "2")
    with own_network() as prefix:
        new = Daemon(tmp_path, NAMES[0], prefix)
        async with running([new]) as alone:
            await alone.meet()
            other = Daemon(tmp_path, NAMES[1], prefix, command=older.command)
            async with running([other]):
                cluster = Cluster([new, other])
                await cluster.meet()
                await cluster.say_yes()
                await asyncio.to_thread(other.stop)
                await alone.meet()  # the new one leads then, and goes on leading
                other.start()
                await cluster.meet()
                refused = cluster.ctl(*run, "--max-steps", "60", daemon=new)
                assert refused.returncode == 2, cluster.failure_text(refused.stdout)
                named = f"{NAMES[1]} runs a build of jupiterd that can't train adapters"
                assert named in refused.stderr
                assert f"node remove {NAMES[1]}" in refused.stderr
                await asyncio.to_thread(other.stop)
                started = alone.ctl(*run, "--max-steps", "60")
                assert started.returncode == 0, alone.failure_text(started.stderr)
                await until_trained(alone, new, 3, WAIT_S)
                other.start()
                await cluster.meet()
                await alone.until(
                    lambda run: run["state"] == "finished" or len(run["gang"]) > 1,
                    "the run is over",
                    WAIT_S,
                    noun="train",
                )
        (trained,) = [each for each in new.state().cycles.values() if each.training]
        ranks = {node for opened in trained.attempts_opened.values() for node in opened.gang}
        assert len(ranks) == 1, "the older one trained nothing of it"
