"""No test of those that share a cluster sees what another has done."""

from pathlib import Path

import pytest

from tests.support.daemons.shared_cluster import SharedCluster

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.timeout(120)]


async def test_a_cluster_in_which_something_was_left_is_not_lent_again(tmp_path: Path) -> None:
    lender = SharedCluster(tmp_path)
    try:
        first = await lender.lend()
        lender.take_back()
        assert await lender.lend() is first
        assert first.ctl("node", "role", "node-2", "idle").returncode == 0
        lender.take_back()
        second = await lender.lend()
        assert second is not first
        assert all(daemon.process.poll() is not None for daemon in first.daemons)
        second[1].kill()
        lender.take_back()
        third = await lender.lend()
        assert third is not second
    finally:
        lender.end()
