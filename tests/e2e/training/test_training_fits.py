"""A run that nothing was said of follows its data, on real daemons, through its leader's death."""

import json
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import CheckpointCommitted
from jupiterd.cycle.training.horizon import Horizon
from tests.e2e.islands.test_islands import outer_steps, run_of
from tests.support.daemons.cluster import Cluster, Daemon, Document
from tests.support.daemons.training_runs import two_daemons, until_trained, write_letters

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.full, pytest.mark.timeout(400)]

BATCH = 16
LINES = 16
PASS = 10
"""Steps that take each letter of so many lines about once."""

OF_A_RANK = "--batch-size", "4", "--gradient-accumulation-steps", str(BATCH // 2 // 4)


async def test_steps_follow_the_text_and_what_was_decided_outlives_the_leader(
    tmp_path: Path,
) -> None:
    letters = write_letters(tmp_path, lines=LINES)
    async with two_daemons(tmp_path) as two:
        cluster, survivor = two.cluster, two.survivor
        follower = two.train(letters, *OF_A_RANK)
        before = await until_trained(cluster, survivor, PASS, 150)
        while not before.get("held_out_loss"):
            before = await until_trained(cluster, survivor, before["step"] + 1, 60)
        two.leader.kill()
        ended = await follower
        assert ended.returncode == 0, cluster.failure_text(ended.stdout + ended.stderr)
        assert ", best at step " in ended.stdout
        assert_follows_text(cluster, survivor)
        assert_shown(cluster, survivor)


@pytest.mark.long
async def test_two_islands_follow_the_text_and_end_with_the_best_weights_that_they_merged(
    tmp_path: Path,
) -> None:
    letters = write_letters(tmp_path, lines=LINES)
    async with two_daemons(tmp_path) as two:
        cluster, survivor = two.cluster, two.survivor
        names = f"torch:{survivor.name} torch:{two.leader.name}"
        apart = "--islands", names, "--sync-every", "10"
        follower = two.train(letters, *OF_A_RANK, *apart)
        before = await until_trained(cluster, survivor, PASS, 150)
        while not before.get("held_out_loss"):
            before = await until_trained(cluster, survivor, before["step"] + 1, 60)
        two.leader.kill()
        ended = await follower
        assert ended.returncode == 0, cluster.failure_text(ended.stdout + ended.stderr)
        assert ", best at step " in ended.stdout
        run = run_of(survivor)
        assert run is not None
        taken = outer_steps(survivor)
        assert_passes(taken[-1].first_step, run.manifests[1].sequences)
        horizons = [Horizon.of(step.horizon) for step in taken]
        decided = [each.decay_from for each in horizons if each.decay_from]
        assert decided
        assert len({*decided}) == 1, "decided once, whoever led"
        last = run.last_checkpoint(1)
        assert last is not None
        best = Horizon.of(last.horizon)
        assert best.best_step in {step.scored_step for step in taken}
        losses = [each.best_loss for each in horizons if each.step]
        assert best.best_loss <= min(losses) + 1e-6
        assert_shown(cluster, survivor)


def assert_passes(steps: int, sequences: int) -> None:
    passes = steps * BATCH / sequences
    assert 3.9 <= passes <= 16.1, passes


def assert_follows_text(cluster: Cluster, asked: Daemon) -> None:
    """Between four and sixteen passes were taken, as the recorded losses have decided."""
    (run,) = asked.state().cycles.values()
    made = [fact for fact in run.canonical_branch() if isinstance(fact, CheckpointCommitted)]
    assert len(run.attempts_opened) >= 2, "the leader's death must have cost an epoch"
    assert_passes(made[-1].step, run.manifests[1].sequences)
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
