"""A copied state folder: everybody is told, and it is over when the copy is."""

import shutil
from pathlib import Path

import pytest

from tests.support.daemons.cluster import Document
from tests.support.network.lab import lab_of
from tests.support.network.machines import Machine, Views, machines_of, sees

pytestmark = pytest.mark.timeout(180)

JOIN_S = 15.0
TOLD_S = 60.0
"""A machine that is silent is greeted every half minute at the least."""
OVER_S = 45.0


def told(view: Document | None, code: str) -> str:
    """Return what a view says of it; empty where it says nothing."""
    lines = [] if view is None else view["health"]
    return next((line["title"] for line in lines if line["code"] == code), "")


async def test_a_copied_machine_is_told_on_all_and_comes_back_when_the_copy_ends(
    tmp_path: Path,
) -> None:
    with lab_of(3) as lab:
        async with machines_of(lab, tmp_path) as machines:
            (view, *_) = await machines.one_cluster(JOIN_S)
            leader = machines.leader(view)
            original = machines.but(leader)[0]
            others = machines.but(original)
            (host,) = lab.add_hosts(1)
            copy = Machine(tmp_path / "elsewhere", host)
            shutil.copytree(original.state_dir, copy.state_dir, ignore=_not_sockets)
            copy.start()
            try:
                both = f"{original.host.address}:47470 and {host.address}:47470"
                line = f"two machines use {original.name}'s key: {both}"
                views = await machines.until_all(
                    lambda views: all(told(each, "clone-of-member") == line for each in views),
                    "the clone is told",
                    TOLD_S,
                    others,
                )
                assert not any(told(each, "node-gone") for each in views), "nobody is to be woken"
                assert told(await original.view(), "clone")
            finally:
                copy.stop()
                assert copy.process is not None
                copy.process.wait(20)
            await machines.until_all(
                lambda views: _are_well(views, view), "all is well again", OVER_S
            )


def _are_well(views: Views, before: Document) -> bool:
    """Say whether all see all, and nobody tells of a clone."""
    ids = [node["id"] for node in before["nodes"]]
    return all(
        view is not None
        and sees(view, *ids)
        and not told(view, "clone")
        and not told(view, "clone-of-member")
        for view in views
    )


def _not_sockets(folder: str, names: list[str]) -> set[str]:
    return {name for name in names if Path(folder, name).is_socket() or name == "lock"}
