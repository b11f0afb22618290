"""Every planted fault is noticed: the invariants see what they are there to see."""

import pytest

from tests.simulation.faults.mutants import MUTANTS, Mutant
from tests.simulation.seeds import SeedFailed, run_seed

FIRST_SEED = 7000
EACH = 8
"""Each of so many faults is planted by `make test`, all of them by `make test-all`."""


def first_failing_seed(mutant: Mutant) -> int | None:
    for number in mutant.order:
        seed = FIRST_SEED + number
        try:
            run_seed(seed, mutant.profile)
        except SeedFailed as failed:
            print(str(failed).splitlines()[0])
            return seed
    return None


@pytest.mark.parametrize(
    "mutant",
    [
        pytest.param(mutant, id=mutant.name, marks=[] if nth % EACH == 0 else pytest.mark.full)
        for nth, mutant in enumerate(MUTANTS)
    ],
)
def test_a_planted_fault_is_noticed_and_nothing_else(
    mutant: Mutant, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as planted:
        mutant.plant(planted)
        seed = first_failing_seed(mutant)
    assert seed is not None, f"{mutant.seeds} seeds of {mutant.profile.name} don't notice it"
    run_seed(seed, mutant.profile)
