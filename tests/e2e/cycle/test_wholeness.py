"""The checks at the end of a struck cycle can fail."""

from pathlib import Path

import pytest

from tests.support.daemons.cluster import Daemon, running
from tests.support.daemons.surroundings import own_network
from tests.support.strikes.wholeness import left_over

pytestmark = [pytest.mark.net, pytest.mark.slow]


async def test_a_process_that_is_left_is_found(tmp_path: Path) -> None:
    with own_network() as prefix:
        async with running([Daemon(tmp_path, "solo", prefix)]) as cluster:
            await cluster.meet()
            assert len(left_over(tmp_path, [])) == 1
            assert left_over(tmp_path, list(cluster.daemons)) == []
    assert left_over(tmp_path, []) == []
