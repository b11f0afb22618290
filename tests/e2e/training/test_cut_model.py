"""A model that no machine may hold whole, on real daemons: trained, read, and through a death."""

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import CheckpointCommitted
from tests.support.daemons.cluster import Cluster, Daemon, Document
from tests.support.daemons.training_runs import two_daemons, until_trained, write_letters

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.full, pytest.mark.timeout(500)]

STEPS = 60
HOW = "--gradient-accumulation-steps", "2", "--max-steps", str(STEPS)


def seats(shown: Document) -> list[Document]:
    return shown["gang"]


async def test_two_machines_train_together_what_neither_holds_and_transformers_reads_it(
    tmp_path: Path,
) -> None:
    transformers = pytest.importorskip("transformers")
    letters = write_letters(tmp_path)
    async with two_daemons(tmp_path) as two:
        cluster, asked = two.cluster, two.survivor
        ended = two.train(letters, *HOW, "--shard", "3")
        shown = await until_trained(cluster, asked, 5, 150)
        assert shown["stage"] == 3
        assert sum(seat["part"] for seat in seats(shown)) == pytest.approx(1, abs=0.01)
        done = await ended
        assert done.returncode == 0, cluster.failure_text(done.stdout + done.stderr)
        assert "stage 3: weights, gradients and what the optimizer keeps are cut" in done.stdout
        folder = done.stdout.splitlines()[-1].removeprefix("model: ")
        model = transformers.AutoModelForCausalLM.from_pretrained(folder)
        assert sum(each.numel() for each in model.parameters()) > 100_000
        assert_trained_on_once(cluster, asked)


async def test_a_rank_that_is_killed_costs_what_came_since_the_last_checkpoint(
    tmp_path: Path,
) -> None:
    letters = write_letters(tmp_path)
    async with two_daemons(tmp_path) as two:
        cluster, asked = two.cluster, two.survivor
        ended = two.train(letters, *HOW, "--shard", "1")
        shown = await until_trained(cluster, asked, 25, 150)
        os.kill(int(seats(shown)[-1]["pid"]), signal.SIGKILL)
        done = await ended
        assert done.returncode == 0, cluster.failure_text(done.stdout + done.stderr)
        (run,) = asked.state().cycles.values()
        stages = {fact.attempt: fact.stage for fact in run.attempts_opened.values()}
        assert len(stages) >= 2
        assert set(stages.values()) == {1}
        assert_trained_on_once(cluster, asked)


async def test_what_fits_no_member_s_limit_is_cut_and_waits_for_a_member_that_is_gone(
    tmp_path: Path,
) -> None:
    letters = write_letters(tmp_path)
    async with two_daemons(tmp_path) as two:
        cluster, asked, other = two.cluster, two.survivor, two.leader
        limits = [f"--memory={daemon.name}=0.5" for daemon in (asked, other)]
        ended = two.train(letters, *HOW, "--optimizer", "adamw", *limits)
        shown = await until_trained(cluster, asked, 20, 150)
        assert shown["stage"] is not None, "nobody has said that it is to be cut"
        other.kill()
        async with asyncio.timeout(90):
            while "GB more memory" not in (waiting := status_of(cluster, asked)):  # noqa: ASYNC110 - asks
                await asyncio.sleep(1)
        assert f"{other.name} is gone" in waiting
        other.start()
        done = await ended
        assert done.returncode == 0, cluster.failure_text(done.stdout + done.stderr)
        assert_trained_on_once(cluster, asked)


def status_of(cluster: Cluster, asked: Daemon) -> str:
    return cluster.ctl("train", "status", daemon=asked).stdout


def assert_trained_on_once(cluster: Cluster, asked: Daemon) -> None:
    (run,) = asked.state().cycles.values()
    made = [fact for fact in run.canonical_branch() if isinstance(fact, CheckpointCommitted)]
    assert made[-1].step == STEPS
    audited = cluster.ctl("data", "audit", "-o", "json", daemon=asked)
    assert audited.returncode == 0, audited.stdout + audited.stderr
    (proof,) = json.loads(audited.stdout)["audit"]
    assert proof["ok"]
