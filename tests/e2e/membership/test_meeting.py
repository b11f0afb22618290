"""Three daemons become one cluster, and stay one when its leader dies."""

import json
from pathlib import Path

import pytest

from tests.support.daemons.cluster import Document, three_daemons, wrong

pytestmark = [
    pytest.mark.smoke,
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.timeout(180),
]


def roles(view: Document) -> dict[str, tuple[str, str]]:
    return {node["id"]: (node["role"], node["reason"]) for node in view["nodes"]}


async def test_three_daemons_become_one_cluster_and_outlive_their_leader(tmp_path: Path) -> None:
    async with three_daemons(tmp_path) as cluster:
        views = await cluster.meet()
        assert len({view["node"]["id"] for view in views}) == 3
        assert all(len(view["nodes"]) == 3 for view in views)
        assert roles(views[0]) == roles(views[1]) == roles(views[2])
        assert sorted(role for role, _ in roles(views[0]).values()) == [
            "generator", "trainer", "trainer",
        ]  # fmt: skip
        assert all(reason for _, reason in roles(views[0]).values())
        assert not any(map(wrong, views))
        printed = cluster.ctl("status", "-o", "json", daemon=cluster[1])
        assert printed.returncode == 0, printed.stderr
        assert json.loads(printed.stdout)["cluster"] == views[1]["cluster"]

        old = views[0]["cluster"]
        leader = cluster.by_id(old["leader"], views[0])
        leader.kill()
        others = [daemon for daemon in cluster.daemons if daemon is not leader]
        after = await cluster.meet(others)
        new = after[0]["cluster"]
        assert new["id"] == old["id"]
        assert new["leader"] != old["leader"]
        assert new["term"] > old["term"]
        gone = next(node for node in after[0]["nodes"] if node["id"] == old["leader"])
        assert gone["state"] in ("suspect", "gone")

        leader.start()
        again = await cluster.meet()
        assert {view["node"]["id"] for view in again} == {view["node"]["id"] for view in views}
        assert again[0]["cluster"]["leader"] == new["leader"], "a working leader isn't disturbed"
        assert len(again[0]["nodes"]) == 3
