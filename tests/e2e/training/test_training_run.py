"""Training without the cycle, on real daemons: through the death of the leader, and audited."""

import json
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import CheckpointCommitted
from tests.support.daemons.cluster import Cluster, Daemon
from tests.support.daemons.training_runs import two_daemons, until_trained, write_letters
from tests.support.strikes.wholeness import left_over

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.timeout(400)]

STEPS = 180


@pytest.mark.long  # like `tests/network/test_chaos`, on loopback; and `test_pausing`
async def test_a_training_run_outlives_its_leader_and_trains_on_each_sequence_once(
    tmp_path: Path,
) -> None:
    letters = write_letters(tmp_path)
    async with two_daemons(tmp_path) as two:
        cluster, leader, survivor = two.cluster, two.leader, two.survivor
        how = "--gradient-accumulation-steps", "2"
        follower = two.train(letters, "--max-steps", str(STEPS), *how)
        before = await until_trained(cluster, survivor, 110, 150)
        assert (before["kind"], before["val_bpb"]) == ("train", None)
        leader.kill()
        ended = await follower
        assert ended.returncode == 0, cluster.failure_text(ended.stdout + ended.stderr)
        verdict, val_bpb, model = ended.stdout.splitlines()[-3:]
        assert verdict == "verdict: -"
        assert 0 < float(val_bpb.removeprefix("val_bpb: ")) < 4
        folder = Path(model.removeprefix("model: "))
        assert folder.parent.parent == survivor.state_dir / "runs"
        assert {"config.json", "model.safetensors", "tokenizer.json"} <= files_in(folder)
        assert_trained_on_once(cluster, survivor)
        leader.start()
        await cluster.meet()
        audited = cluster.ctl("data", "audit", daemon=leader)
        assert audited.returncode == 0, audited.stdout + audited.stderr
    assert left_over(tmp_path, []) == []


def files_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def assert_trained_on_once(cluster: Cluster, asked: Daemon) -> None:
    (run,) = asked.state().cycles.values()
    made = [fact for fact in run.canonical_branch() if isinstance(fact, CheckpointCommitted)]
    assert len(run.attempts_opened) >= 2, "the leader's death must have cost an epoch"
    assert made[-1].step == STEPS
    audited = cluster.ctl("data", "audit", "-o", "json", daemon=asked)
    assert audited.returncode == 0, audited.stdout + audited.stderr
    (proof,) = json.loads(audited.stdout)["audit"]
    (only,) = proof["rounds"]
    assert (proof["ok"], only["cursor"], only["tokens"]) == (True, STEPS * 4, STEPS * 4 * 64)
    assert proof["checkpoints_read"] == proof["checkpoints"] == len(made)
