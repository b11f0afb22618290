"""A run that nothing was said of follows its data, on real daemons, through its leader's death."""

import asyncio
import json
from pathlib import Path

import pytest

from jupiterd.cluster.facts import CheckpointCommitted
from jupiterd.cycle.training.horizon import Horizon
from tests.e2e.cluster import NAMES, Cluster, Daemon, Document, running
from tests.e2e.surroundings import own_network
from tests.e2e.test_training_run import training, write_letters

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.full,
    pytest.mark.timeout(400),
]

BATCH = 16


async def test_steps_follow_the_text_and_what_was_decided_outlives_the_leader(
    tmp_path: Path,
) -> None:
    letters = write_letters(tmp_path)
    with own_network() as prefix:
        daemons = [Daemon(tmp_path, name, prefix) for name in NAMES[:2]]
        async with running(daemons) as cluster:
            (view, *_) = await cluster.meet()
            leader = cluster.by_id(view["cluster"]["leader"], view)
            survivor = next(daemon for daemon in daemons if daemon is not leader)
            follower = asyncio.ensure_future(
                asyncio.to_thread(
                    cluster.ctl,
                    *("train", "start", "--data", str(letters), "--model", "1m"),
                    *("--seq-len", "64", "--gradient-accumulation-steps", str(BATCH // 2)),
                    *("--wait", "--timeout", "300"),
                    daemon=survivor,
                    timeout_s=320,
                )
            )
            before = await training(cluster, survivor, 40, 150)
            while not before.get("held_out_loss"):
                before = await training(cluster, survivor, before["step"] + 1, 60)
            leader.kill()
            ended = await follower
            assert ended.returncode == 0, cluster.told(ended.stdout + ended.stderr)
            assert ", best at step " in ended.stdout
            assert_follows_text(cluster, survivor)
            assert_shown(cluster, survivor)


def assert_follows_text(cluster: Cluster, asked: Daemon) -> None:
    """Between four and sixteen passes were taken, as the recorded losses have decided."""
    (run,) = asked.state().cycles.values()
    made = [fact for fact in run.line() if isinstance(fact, CheckpointCommitted)]
    assert len(run.epochs_opened) >= 2, "the leader's death must have cost an epoch"
    passes = made[-1].step * BATCH / run.manifests[1].sequences
    assert 3.9 <= passes <= 16.1, passes
    horizons = [Horizon.of(fact.horizon) for fact in made]
    decided = [horizon.decay_from for horizon in horizons if horizon.decay_from]
    assert decided
    assert len({*decided}) == 1, "decided once, whoever led"
    assert horizons[-1].best_step
    audited = cluster.ctl("data", "audit", "-o", "json", daemon=asked)
    assert audited.returncode == 0, audited.stdout + audited.stderr
    (proof,) = json.loads(audited.stdout)["audit"]
    assert proof["ok"]


def assert_shown(cluster: Cluster, asked: Daemon) -> None:
    status = cluster.ctl("train", "status", "-o", "json", daemon=asked)
    train: Document = json.loads(status.stdout)["train"]
    assert 0 < train["held_out_loss"] < 8
    assert 0 < train["best_step"] <= train["step"]
    curve = cluster.ctl("train", "status", "--curve", "-o", "json", daemon=asked)
    assert len(json.loads(curve.stdout)["curve"]["validation"]) > 1, curve.stdout
