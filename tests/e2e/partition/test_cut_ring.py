"""A ring of MLX that holds a model together loses a machine, goes on, and takes it in again."""

import asyncio
import json
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import CheckpointCommitted
from tests.e2e.partition.test_cut_gang import cut_power
from tests.support.daemons.training_runs import two_daemons, until_trained, write_letters

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.full, pytest.mark.timeout(500)]

STEPS = 130
"""A set of parts is due after 100."""

KILLED_AT = 103
WAIT_S = 120.0


async def test_a_machine_that_loses_its_power_costs_a_cut_ring_no_recorded_step(
    tmp_path: Path,
) -> None:
    pytest.importorskip("mlx.core")
    transformers = pytest.importorskip("transformers")
    letters = write_letters(tmp_path)
    async with two_daemons(tmp_path) as two:
        cluster, asked, other = two.cluster, two.survivor, two.leader
        for daemon in (asked, other):
            assert cluster.ctl("node", "role", daemon.name, "trainer").returncode == 0
        how = ("--gradient-accumulation-steps", "1", "--batch-size", "2")
        ending = two.train(
            letters, *how, "--max-steps", str(STEPS), "--engine", "mlx", "--shard", "2"
        )
        before = await until_trained(cluster, asked, KILLED_AT, 200)
        assert (before["stage"], len(before["gang"])) == (2, 2)
        cut_power(other)
        alone = await cluster.until(
            lambda run: run["epoch"] > before["epoch"] and len(run["gang"]) == 1,
            "one that goes on",
            WAIT_S,
            asked,
            "train",
        )
        assert alone["resumed_from_step"] in (0, 100)
        other.start()
        done = await ending
        assert done.returncode == 0, cluster.failure_text(done.stdout + done.stderr)
        folder = done.stdout.splitlines()[-1].removeprefix("model: ")
        model = await asyncio.to_thread(transformers.AutoModelForCausalLM.from_pretrained, folder)
        assert sum(each.numel() for each in model.parameters()) > 100_000
        (run,) = asked.state().cycles.values()
        stages = {fact.stage for fact in run.attempts_opened.values() if len(fact.gang) > 1}
        assert stages == {2}
        made = [f.step for f in run.canonical_branch() if isinstance(f, CheckpointCommitted)]
        assert (made, made[-1]) == (sorted(set(made)), STEPS)
        audited = cluster.ctl("data", "audit", "-o", "json", daemon=asked)
        (proof,) = json.loads(audited.stdout)["audit"]
        assert proof["ok"], proof
