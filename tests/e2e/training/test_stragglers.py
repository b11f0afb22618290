"""A slow machine joins a fast one: it is let go of with the reason, and no step is lost."""

import sys
from pathlib import Path

import pytest

from tests.support.daemons.cluster import NAMES, Daemon, running
from tests.support.daemons.surroundings import own_network
from tests.support.daemons.training_runs import until_trained, write_letters

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.timeout(400)]

SEQUENCE_S = 1.0
"""What each sequence takes longer on the slow one."""

STEPS, BATCH = 200, 4
"""With the slow machine a step takes a second at least, and a small part of that without it."""

WITHIN_STEPS = 20
"""Of the step at which it was measured first; the gang stops after the running one."""

SLOW = Path(__file__).parents[2] / "support" / "slow_jupiterd.py"


async def test_the_gang_goes_on_without_a_machine_that_makes_its_steps_longer(
    tmp_path: Path,
) -> None:
    letters = write_letters(tmp_path)
    with own_network() as prefix:
        slow_command = (sys.executable, "-P", SLOW, str(SEQUENCE_S))
        fast = Daemon(tmp_path, NAMES[0], prefix)
        slow = Daemon(tmp_path, NAMES[1], prefix, command=slow_command)
        async with running([fast, slow]) as cluster:
            (view, *_) = await cluster.meet()
            started = cluster.ctl(
                *("train", "start", "--data", str(letters), "--model", "1m", "--engine", "torch"),
                *("--max-steps", str(STEPS), "--seq-len", "64"),
                *("--gradient-accumulation-steps", str(BATCH // 2)),
                daemon=fast,
            )
            assert started.returncode == 0, started.stderr
            await until_trained(cluster, fast, WITHIN_STEPS + 4, 200)

            (run,) = [run for run in fast.state().cycles.values() if run.attempts_opened]
            names = {seen["id"]: seen["name"] for seen in view["nodes"]}
            first = run.attempts_opened[min(run.attempts_opened)]
            last = run.attempts_opened[max(run.attempts_opened)]
            closed = run.attempts_closed[first.attempt]
            assert {names[node] for node in first.gang} == {fast.name, slow.name}
            assert [names[node] for node in last.gang] == [fast.name]
            assert 0 < last.from_step <= WITHIN_STEPS
            assert f"{slow.name} is let go of; it generates: a step takes" in closed.reason

            shown = cluster.ctl("train", "status", daemon=fast).stdout
            assert f"{slow.name}: it generates: a step takes" in shown
            roles = cluster.ctl("node", "show", slow.name, daemon=fast).stdout
            assert "generator" in roles
            assert "less time without it" in roles

            await until_trained(cluster, fast, STEPS, 200)
            audited = cluster.ctl("data", "audit", daemon=fast)
            assert audited.returncode == 0, audited.stdout + audited.stderr
