"""What holds for every test."""

import asyncio
import os
import secrets

import pytest
from hypothesis import HealthCheck, settings

SEED_VARIABLE = "JUPITER_TEST_SEED"

# The same examples in every run, and no time limit for one of them: machines that test are busy.
settings.register_profile(
    "jupiter", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("jupiter")


def pytest_configure() -> None:
    # Or pytest-asyncio asks for "the current loop", gets one made for it, and never closes it:
    # a warning at the very end of the run, which counts as an error.
    asyncio.set_event_loop(None)


@pytest.fixture
def seed() -> int:
    """Return another seed each time, shown where a test fails; the variable has one used again."""
    seed = int(os.environ.get(SEED_VARIABLE) or secrets.randbelow(1 << 32))
    print(f"{SEED_VARIABLE}={seed}")
    return seed
