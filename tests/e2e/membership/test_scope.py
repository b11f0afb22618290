"""Daemons of several scopes on one network: they unite within theirs, and by name beyond it."""

from pathlib import Path

import pytest

from tests.support.daemons.cluster import Cluster, Daemon, running
from tests.support.daemons.surroundings import own_network
from tests.support.fork_server import jupiterd_command

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.timeout(120),
]

SCOPED = (*jupiterd_command(), "--scope", "attic")


async def test_a_closed_cluster_beside_them_is_no_trouble_to_daemons_of_another_scope(
    tmp_path: Path,
) -> None:
    with own_network() as prefix:
        closed = Daemon(tmp_path, "closed", prefix, {"JUPITER_CLOSED": "true"})
        scoped = [Daemon(tmp_path, name, prefix, command=SCOPED) for name in ("one", "two")]
        async with running([closed, *scoped]) as cluster:
            await cluster.say_yes(scoped)
            shown = cluster.ctl("status", daemon=scoped[0]).stdout
            assert "health   good" in shown
            await cluster.meet([closed])


async def test_a_peer_that_is_named_is_met_whatever_its_scope(tmp_path: Path) -> None:
    with own_network() as prefix:
        async with running([Daemon(tmp_path, "one", prefix)]) as alone:
            (view,) = await alone.meet()
            address = view["nodes"][0]["addresses"][0]
            other = Daemon(tmp_path, "two", prefix, {"JUPITER_PEER": address}, SCOPED)
            async with running([other]):
                await Cluster([alone[0], other]).meet()
