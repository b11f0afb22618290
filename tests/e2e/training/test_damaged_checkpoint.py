"""The newest checkpoint is damaged on every disk: training goes on from the one before."""

import json
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import CheckpointCommitted
from jupiterd.cluster.ledger.cycle_state import CycleState
from tests.support.daemons.cluster import NAMES, Daemon, running
from tests.support.daemons.surroundings import own_network
from tests.support.daemons.training_runs import until_trained, write_letters
from tests.support.strikes.wholeness import left_over

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.timeout(280)]

STEPS = 170


def checkpoints(daemon: Daemon) -> list[CheckpointCommitted]:
    (run,) = daemon.state().cycles.values()
    return of_line(run)


def of_line(run: CycleState) -> list[CheckpointCommitted]:
    return [fact for fact in run.canonical_branch() if isinstance(fact, CheckpointCommitted)]


def damage(daemon: Daemon, artifact: str) -> None:
    """Change one byte of the weights; neither size nor name tells it."""
    place = daemon.state_dir / "store" / artifact[:2] / artifact / "files" / "model.safetensors"
    place.chmod(0o644)
    changed = bytearray(place.read_bytes())
    changed[-100] ^= 1
    place.write_bytes(changed)


async def test_training_goes_on_from_the_checkpoint_before_the_damaged_one(tmp_path: Path) -> None:
    letters = write_letters(tmp_path)
    with own_network() as prefix:
        daemons = [Daemon(tmp_path, name, prefix) for name in NAMES[:2]]
        async with running(daemons) as cluster:
            await cluster.meet()
            begun = cluster.ctl(
                *("train", "start", "--data", str(letters), "--model", "1m", "--seq-len", "64"),
                *("--max-steps", str(STEPS), "--gradient-accumulation-steps", "2"),
            )
            assert begun.returncode == 0, begun.stderr
            await until_trained(cluster, daemons[0], 110, 120)
            stopped = cluster.ctl("train", "stop", "--yes", "--wait", "--timeout", "30s")
            assert stopped.returncode == 0, stopped.stderr
            await cluster.recorded(
                lambda run: (
                    all(daemon.holds(of_line(run)[-1].artifact) for daemon in daemons)
                    and len(of_line(run)) == 2
                ),
                "step 100 and the stop, on both disks",
                30,
            )
            for daemon in daemons:
                daemon.kill()
            before, newest = checkpoints(daemons[0])[-2:]
            assert before.step < newest.step < STEPS
            for daemon in daemons:
                damage(daemon, newest.artifact)
                daemon.start()
            await cluster.meet()
            ended = cluster.ctl(
                *("train", "start", "--resume", "--wait", "--timeout", "120"), timeout_s=140
            )
            assert ended.returncode == 0, cluster.failure_text(ended.stdout + ended.stderr)
            made = checkpoints(daemons[0])
            assert newest.artifact not in [fact.artifact for fact in made]
            after = made[[fact.artifact for fact in made].index(before.artifact) + 1]
            (run,) = daemons[0].state().cycles.values()
            assert run.attempts_opened[after.attempt].from_step == before.step
            shown = json.loads(cluster.ctl("train", "status", "-o", "json").stdout)["train"]
            assert any("is damaged" in event["text"] for event in shown["events"]), shown["events"]
            audited = cluster.ctl("data", "audit")
            assert audited.returncode == 0, audited.stdout + audited.stderr
        assert left_over(tmp_path, []) == []
