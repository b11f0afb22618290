"""The leader goes in the middle of a training round: the others finish what it began."""

from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import CheckpointCommitted
from tests.support.network import links
from tests.support.network.machines import machines_on
from tests.support.sources.tiny_domain import write_domain
from tests.support.strikes.wholeness import assert_whole

pytestmark = pytest.mark.timeout(400)

JOIN_S = 20.0
TRAINS_S = 120.0
END_S = 240.0
ADOPTED_S = 30.0
STEPS = 250
STEPS_OF_MINUTES = 1000


async def test_a_round_is_finished_without_the_leader_that_began_it(tmp_path: Path) -> None:
    domain = str(write_domain(tmp_path, steps=STEPS))
    async with machines_on(3, tmp_path) as machines:
        (view, *_) = await machines.one_cluster(JOIN_S)
        leader = machines.leader(view)
        survivor = machines.but(leader)[0]
        command = ("cycle", "start", "--domain", domain, "--engine", "torch", "--rounds", "1")
        started = machines.ctl(*command, "--seed", "7", daemon=survivor)
        assert started.returncode == 0, started.stderr
        await machines.recorded(
            lambda cycle: cycle.last_checkpoint(1) is not None, "a checkpoint", TRAINS_S, survivor
        )
        leader.kill()
        ended = await machines.until(
            lambda cycle: cycle["state"] not in ("running", "waiting"), "the end", END_S, survivor
        )
        assert ended["state"] == "finished", machines.failure_text(str(ended["failure"]))
        leader.start()
        await machines.one_cluster(JOIN_S)
        (cycle,) = survivor.state().cycles.values()
        await assert_whole(machines, cycle, STEPS, tmp_path)


async def test_a_gang_goes_on_when_the_cable_of_its_leader_is_pulled(tmp_path: Path) -> None:
    domain = str(write_domain(tmp_path, steps=STEPS_OF_MINUTES))
    async with machines_on(3, tmp_path) as machines:
        (view, *_) = await machines.one_cluster(JOIN_S)
        leader = machines.leader(view)
        survivor = machines.but(leader)[0]
        for machine in machines.machines:
            role = "generator" if machine is leader else "trainer"
            assert machines.ctl("node", "role", machine.name, role).returncode == 0
        command = ("cycle", "start", "--domain", domain, "--engine", "torch", "--rounds", "1")
        started = machines.ctl(*command, "--seed", "7", daemon=survivor)
        assert started.returncode == 0, started.stderr
        before = await machines.until(
            lambda cycle: len(cycle["gang"]) == 2 and cycle["step"] >= 50,
            "a gang that trains",
            TRAINS_S,
            survivor,
        )
        links.pull(leader.host)
        await machines.recorded(
            lambda cycle: bool(cycle.attempts_adopted), "the adoption", ADOPTED_S, survivor
        )
        after = await machines.until(
            lambda cycle: len(cycle["gang"]) == 2 and cycle["step"] > before["step"],
            "a gang under another leader",
            ADOPTED_S,
            survivor,
        )
        links.plug(leader.host)
        assert [seat["pid"] for seat in after["gang"]] == [seat["pid"] for seat in before["gang"]]
        ended = await machines.until(
            lambda cycle: cycle["state"] not in ("running", "waiting"), "the end", END_S, survivor
        )
        assert ended["state"] == "finished", machines.failure_text(str(ended["failure"]))
        await machines.one_cluster(JOIN_S)
        (cycle,) = survivor.state().cycles.values()
        line = [fact for fact in cycle.canonical_branch() if isinstance(fact, CheckpointCommitted)]
        assert {fact.attempt for fact in line} == {1}
        assert cycle.attempts_closed[1].reason == "finished"
        await assert_whole(machines, cycle, STEPS_OF_MINUTES, tmp_path)
