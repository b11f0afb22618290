"""Hundreds of seeds hold every invariant, and each can be run again as it was."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import SEED_VARIABLE
from tests.simulation.profiles import BY_NAME, USUAL, profile_of
from tests.simulation.seeds import SeedFailed, run_seed

BATCHES, SEEDS_IN_BATCH = 20, 50
SHORT_BATCHES, FULL_BATCHES = 1, 8
"""So many of them are run by `make test` and by `make test-all`, the others by `make test-long`; as
many seeds as one likes are run by `make simulate`."""

FIRST_SEED = int(os.environ.get(SEED_VARIABLE) or 0)
"""The same in every run unless somebody asks: what fails, fails for everybody."""

ROOT = Path(__file__).parents[2]


def marks_of(batch: int) -> list[pytest.MarkDecorator]:
    """Return which command runs a batch of seeds first."""
    if batch < SHORT_BATCHES:
        return []
    return [pytest.mark.full if batch < FULL_BATCHES else pytest.mark.long]


@pytest.mark.parametrize(
    "batch", [pytest.param(batch, marks=marks_of(batch)) for batch in range(BATCHES)]
)
def test_every_invariant_holds(batch: int) -> None:
    first = FIRST_SEED + batch * SEEDS_IN_BATCH
    for seed in range(first, first + SEEDS_IN_BATCH):
        run_seed(seed)


def test_a_seed_has_the_same_history_every_time_and_everywhere() -> None:
    for seed in range(3):
        told = subprocess.run(
            [sys.executable, "-m", "tests.simulation", str(seed), "1", "--trace"],
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": str(seed + 1)},
        )
        assert run_seed(seed) == run_seed(seed) == told.stdout.split()[1]


def test_different_seeds_have_different_histories() -> None:
    profile = USUAL[0]
    assert len({run_seed(seed, profile) for seed in range(5)}) == 5


def test_every_profile_has_its_turn() -> None:
    assert {profile_of(seed).name for seed in range(200)} == set(BY_NAME)


def test_a_failing_seed_says_its_number_and_what_happened_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "tests.simulation.invariants.healing.what_is_lost", lambda _world: "everything"
    )
    with pytest.raises(SeedFailed) as failed:
        run_seed(1)
    lines = str(failed.value).splitlines()
    assert lines[0] == "seed 1 (links): Violation: everything"
    assert lines[1] == "again: python -m tests.simulation 1 1 links"
    assert len(lines) > 20
