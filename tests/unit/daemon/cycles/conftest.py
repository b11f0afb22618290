"""What the tests of cycles need: their workers from the test run's warm processes."""

import pytest


@pytest.fixture(autouse=True)
def _warm_workers(warm_starts: None) -> None:
    """What a worker imports is imported once, not for each of the many that these start."""
