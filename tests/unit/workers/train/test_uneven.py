"""Two ranks of unlike speed: each takes its share, and they learn what one machine learns."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median

import pytest

from jupiterd.cycle.training.batch_shares import FIRST_LOOK_STEPS
from tests.support.workers.gangs import BATCH, ENGINES, Gangs, Told

pytestmark = [pytest.mark.net, pytest.mark.timeout(150), pytest.mark.xdist_group("gangs")]

STEPS = 50
FAST_S, SLOW_S = 0.01, 0.03
"""What a sequence takes on either rank, beside the little that is computed."""


@pytest.mark.full
@pytest.mark.parametrize("engine", ["torch", pytest.param("mlx", marks=pytest.mark.long)])
def test_a_slower_rank_takes_less_and_all_learn_what_one_machine_learns(
    gangs: Gangs, engine: str, tmp_path: Path
) -> None:
    (tmp_path / "two").mkdir()
    (tmp_path / "one").mkdir()
    fast, slow = gangs.trained(tmp_path / "two", engine, STEPS, (FAST_S, SLOW_S))
    (alone,) = gangs.trained(tmp_path / "one", engine, STEPS, (0.0,), micro_batches=(BATCH,))
    assert (fast["error"], slow["error"]) == ("", "")

    losses = [[step["loss"] for step in told["steps"]] for told in (fast, slow, alone)]
    assert losses[0] == pytest.approx(losses[1], abs=1e-6), "ranks see the same loss"
    assert losses[0] == pytest.approx(losses[2], abs=1e-4), "the loss of one machine"

    assert {step["sequences"] for step in fast["steps"][:FIRST_LOOK_STEPS]} == {BATCH / 2}
    later = [told["steps"][FIRST_LOOK_STEPS + 1 :] for told in (fast, slow)]
    taken = median(step["sequences"] for step in later[0])
    assert taken > BATCH / 2
    assert taken == pytest.approx(fair_share(*later), abs=1)
    assert median(map(over_ideal, *later)) <= 1.15

    log = (tmp_path / "two" / "1" / "log").read_text()
    assert "Sync=OK" in log
    assert log.strip().splitlines()[-1].endswith("Training finished. Gradients in sync.")


def fair_share(*ranks: Sequence[Told]) -> float:
    """Return the first rank's share of a batch by what they do in a second: 12, undisturbed."""
    rates = [median(step["sequences"] / step["computed_s"] for step in steps) for steps in ranks]
    return BATCH * rates[0] / sum(rates)


def over_ideal(*ranks: Told) -> float:
    """Return how long a step was computed, by the best time that any division could have had."""
    rates = [step["sequences"] / step["computed_s"] for step in ranks]
    return max(step["computed_s"] for step in ranks) / (BATCH / sum(rates))


@pytest.mark.full
@pytest.mark.parametrize("engine", ENGINES)
def test_a_weight_changed_on_one_rank_stops_the_run_and_names_it(
    gangs: Gangs, engine: str, tmp_path: Path
) -> None:
    told = gangs.trained(tmp_path, engine, 120, (0.0, 0.0, 0.0), (6, 6, 6), nudge_step=60)
    for one in told:
        assert one["error"] == "rank 2 holds other weights than the rest at step 100"
        assert len(one["steps"]) == 100, "nothing was wrong at the check before"
