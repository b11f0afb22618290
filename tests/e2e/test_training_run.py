"""Training without the cycle, on real daemons: through the death of the leader, and audited."""

import asyncio
import json
import random
from pathlib import Path

import pytest

from jupiterd.cluster.facts import CheckpointCommitted
from tests.e2e.cluster import NAMES, Cluster, Daemon, Document, running
from tests.e2e.surroundings import own_network
from tests.e2e.wholeness import left_over

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.timeout(400),
]

STEPS = 180
WORDS = ("the", "queen", "walks", "over", "green", "hills", "and", "sees", "a", "wide", "river")


def write_letters(folder: Path, seed: int = 5) -> Path:
    """Sixty letters that can be learned from."""
    chance = random.Random(seed)
    letters = folder / "letters"
    letters.mkdir()
    for number in range(60):
        lines = [" ".join(chance.choices(WORDS, k=12)) for _ in range(40)]
        (letters / f"letter-{number:02}.txt").write_text("\n".join(lines))
    return letters


async def training(cluster: Cluster, asked: Daemon, at_least: int, timeout_s: float) -> Document:
    """Wait until a run has got so far."""
    async with asyncio.timeout(timeout_s):
        while True:
            train = ((await asked.ask("train")) or {}).get("train") or {}
            assert train.get("state") != "failed", cluster.told(str(train["failure"]))
            if train.get("step", 0) >= at_least:
                return train
            await asyncio.sleep(0.2)


@pytest.mark.long  # like `tests/network/test_chaos`, on loopback; and `test_pausing`
async def test_a_training_run_outlives_its_leader_and_trains_on_each_sequence_once(
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
                    *("--max-steps", str(STEPS), "--seq-len", "64"),
                    *("--gradient-accumulation-steps", "2", "--wait", "--timeout", "300"),
                    daemon=survivor,
                    timeout_s=320,
                )
            )
            before = await training(cluster, survivor, 110, 150)
            assert (before["kind"], before["val_bpb"]) == ("train", None)
            leader.kill()
            ended = await follower
            assert ended.returncode == 0, cluster.told(ended.stdout + ended.stderr)
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
    made = [fact for fact in run.line() if isinstance(fact, CheckpointCommitted)]
    assert len(run.epochs_opened) >= 2, "the leader's death must have cost an epoch"
    assert made[-1].step == STEPS
    audited = cluster.ctl("data", "audit", "-o", "json", daemon=asked)
    assert audited.returncode == 0, audited.stdout + audited.stderr
    (proof,) = json.loads(audited.stdout)["audit"]
    (only,) = proof["rounds"]
    assert (proof["ok"], only["cursor"], only["tokens"]) == (True, STEPS * 4, STEPS * 4 * 64)
    assert proof["checkpoints_read"] == proof["checkpoints"] == len(made)
