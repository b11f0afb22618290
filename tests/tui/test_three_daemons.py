"""The dashboard in a real terminal, against three real daemons."""

from pathlib import Path

import pytest

from tests.e2e.cluster import three_daemons
from tests.tui.terminal import dashboard

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.xdist_group("e2e"),
    pytest.mark.timeout(180),
]


async def test_a_cluster_is_shown_and_its_daemon_may_die_and_come_back(tmp_path: Path) -> None:
    async with three_daemons(tmp_path) as cluster:
        await cluster.meet()
        with dashboard(cluster[0].state_dir) as terminal:
            terminal.read_until(lambda seen: b"3/3 nodes alive" in seen)
            terminal.read_until(lambda seen: all(d.name.encode() in seen for d in cluster.daemons))
            terminal.press(b"2")
            terminal.read_until(lambda seen: b"no cycle has been started" in seen)
            terminal.press(b"1")
            terminal.read_until(lambda seen: b"Health" in seen)
            cluster[0].kill()
            terminal.read_until(lambda seen: b"lost" in seen and b"as of" in seen)
            terminal.seen = b""
            cluster[0].start()
            terminal.read_until(lambda seen: b"live" in seen)
            terminal.press(b"q")
            assert terminal.ended() == 0
            assert terminal.is_restored
