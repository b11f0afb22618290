"""A cycle whose rounds are trained by two islands, each an adapter beside the same base."""

import asyncio
from pathlib import Path

import pytest

from jupiterd.adapter_folder import base_named_in
from jupiterd.cluster.ledger.island_runs import islands_in
from tests.e2e.cycle.test_adapter_cycle import OPTIONS, write_tuned_base
from tests.e2e.cycle.test_promoted_model import done
from tests.e2e.islands.test_cycle_of_islands import assert_islands_of_their_own, cycle_of, id_of
from tests.e2e.islands.test_islands import assert_equal_weights
from tests.support.daemons.cluster import NAMES, Daemon, running
from tests.support.daemons.surroundings import own_network
from tests.support.sources.tiny_domain import write_domain

pytest.importorskip("mlx.core")

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.full,
    pytest.mark.mlx,
    pytest.mark.timeout(500),
]

STEPS, EVERY = 32, 8


async def test_two_rounds_by_islands_of_both_engines_exchange_the_adapter_alone(
    tmp_path: Path,
) -> None:
    base = write_tuned_base(tmp_path / "made")
    domain = write_domain(tmp_path, STEPS, samples=0, batch=8)
    domain.write_text(domain.read_text().replace("vocab_size: 512, ", ""))
    with own_network() as prefix:
        daemons = [Daemon(tmp_path, name, prefix) for name in NAMES[:2]]
        async with running(daemons) as cluster:
            await cluster.meet()
            await cluster.say_yes()
            one, two = daemons
            islands = ("--islands", f"torch:{one.name} mlx:{two.name}", "--sync-every", str(EVERY))
            begin = ("cycle", "start", "--domain", str(domain), "--rounds", "2", *islands)
            asked = (*begin, "--init", str(base), *OPTIONS, "--accept-worse", "--wait")
            await asyncio.to_thread(done, cluster, *asked)
            await asyncio.to_thread(done, cluster, "data", "audit")
        assert_islands_of_their_own(one)
        assert_equal_weights(one, two)
        cycles = one.state().cycles
        cycle = cycle_of(one)
        assert cycle is not None
        assert cycle.started is not None
        frozen = str(cycle.started.settings["start_from"])
        for number in (1, 2):
            begun = [island.training for island, _ in islands_in(cycles, id_of(cycles), number)]
            assert {str(each.settings["start_from"]) for each in begun if each} == {frozen}
            assert base_named_in(next((one.state_dir / "runs").glob(f"*/round-{number}"))) == frozen
        later = [island.training for island, _ in islands_in(cycles, id_of(cycles), 2)]
        before = cycle.rounds[0].final_checkpoint
        assert {str(each.settings.get("adapter_from")) for each in later if each} == {before}
