"""Real daemons get the yes that people gave beforehand, and nobody is asked about them any more."""

import asyncio
from pathlib import Path

import pytest

from tests.support.daemons.cluster import LOOK_S, Cluster, Daemon, Document, running
from tests.support.daemons.surroundings import own_network
from tests.support.fork_server import jupiterd_command

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.full,
    pytest.mark.timeout(90),
]


def asked_about(view: Document) -> set[str]:
    """Return whom health asks about."""
    names = [row["name"] for row in view["nodes"]]
    lines = [line["title"] for line in view["health"] if line["code"] == "node-walked-in"]
    return {name for name in names if any(name in line for line in lines)}


def not_trusted(view: Document) -> set[str]:
    return {row["name"] for row in view["nodes"] if not row["trusted"]}


async def until_asked_about(cluster: Cluster, *names: str) -> None:
    """Wait until every machine asks about these and no others."""
    async with asyncio.timeout(30):
        while any(  # noqa: ASYNC110 - daemons are asked
            asked_about(view) != set(names) or not_trusted(view) != set(names)
            for view in await cluster.meet()
        ):
            await asyncio.sleep(LOOK_S)


async def test_a_file_names_one_and_trust_lan_means_all(tmp_path: Path) -> None:
    with own_network() as prefix:
        one, two, three = (Daemon(tmp_path, name, prefix) for name in ("one", "two", "three"))
        async with running([one]) as alone:
            await alone.meet()
            assert alone.ctl("cluster", "rename", "attic").returncode == 0  # the others come to it
            async with running([two, three]):
                cluster = Cluster([one, two, three])
                await until_asked_about(cluster, "two", "three")
                rows = (await cluster.meet())[0]["nodes"]
                (where,) = (row["addresses"][0] for row in rows if row["name"] == "two")
                file = tmp_path / "attic.yaml"
                file.write_text(f"nodes:\n  - host: '{where}'\n  - name: three\n")
                await begin_again(one, "--cluster", str(file))
                await until_asked_about(cluster, "three")
                await begin_again(one, "--trust-lan")
                await until_asked_about(cluster)
                for asked in (("status",), ("node", "list")):
                    told = cluster.ctl(*asked, daemon=two)
                    assert "walked in" not in told.stdout + told.stderr


async def begin_again(daemon: Daemon, *options: str) -> None:
    await asyncio.to_thread(daemon.stop)
    daemon.command = (*jupiterd_command(), *options)
    daemon.start()
