"""Rounds whose text an adapter writes beside its base, on either engine."""

import asyncio
from pathlib import Path

import pytest

from jupiterd.adapter_folder import base_named_in
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cycle.base.work_item import Phase
from tests.e2e.cycle.test_adapter_cycle import OPTIONS, write_tuned_base
from tests.e2e.cycle.test_promoted_model import done
from tests.support.daemons.cluster import NAMES, Cluster, Daemon, running
from tests.support.sources.tiny_domain import write_domain

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.full,
    pytest.mark.timeout(500),
]

SAMPLES = 80


@pytest.mark.parametrize(
    "engine", ["torch", pytest.param("mlx", marks=[pytest.mark.mlx, pytest.mark.long])]
)
async def test_the_adapter_of_a_round_writes_for_the_next_one(tmp_path: Path, engine: str) -> None:
    base = write_tuned_base(tmp_path / "made")
    (base / "chat_template.jinja").unlink()  # it would write from round 1 on
    domain = write_domain(tmp_path, steps=40, samples=SAMPLES, batch=8)
    domain.write_text(domain.read_text().replace("vocab_size: 512, ", ""))
    begin = ("cycle", "start", "--domain", str(domain), "--init", str(base), "--engine", engine)
    async with running([Daemon(tmp_path, name) for name in NAMES[:2]]) as cluster:
        await cluster.meet()
        await cluster.say_yes()
        await asyncio.to_thread(done, cluster, *begin, *OPTIONS, "--accept-worse", "--wait")
        if _cycle(cluster).rounds[0].verdict != "PROMOTE":
            done(cluster, "model", "promote", "tiny/1", "--yes")
        extended = ("cycle", "extend", "--rounds", "1", "--accept-worse", "--wait")
        await asyncio.to_thread(done, cluster, *extended)
        _has_written(_cycle(cluster))
        await asyncio.to_thread(done, cluster, "data", "audit")
    folders = [*(cluster[0].state_dir / "runs").glob("*/round-2")]
    folders += [*(cluster[1].state_dir / "runs").glob("*/round-2")]
    assert all(base_named_in(folder) for folder in folders)


def _cycle(cluster: Cluster) -> CycleState:
    (cycle,) = cluster[0].state().cycles.values()
    return cycle


def _has_written(cycle: CycleState) -> None:
    """What wrote is the first round's adapter, and it was asked as a trial's tenth."""
    adapter = cycle.rounds[0].final_checkpoint
    written = [*cycle.completed_in(2, Phase.GENERATE).values()]
    assert written
    assert {each.summary["generator"] for each in written} == {adapter}
    assert sum(int(each.counts["prompts"]) for each in written) == SAMPLES // 10
