"""A network falls in two: each half goes on with a leader, and both histories are kept."""

from pathlib import Path

import pytest

from tests.support.daemons.cluster import Document, wrong
from tests.support.network import links
from tests.support.network.machines import Machine, Machines, Views, are_one, ids, machines_on

pytestmark = pytest.mark.timeout(150)

JOIN_S = 20.0
APART_S = 25.0
HEALED_S = 15.0


def lead_themselves(views: Views) -> bool:
    """Say whether all follow one of themselves."""
    known = [view for view in views if view is not None]
    followed = {view["cluster"]["leader"] for view in known}
    return len(known) == len(views) and len(followed) == 1 and followed <= set(ids(known))


def order(machines: Machines, daemon: Machine, *words: str) -> None:
    """Run jupiterctl on a machine; it must succeed."""
    done = machines.ctl(*words, daemon=daemon)
    assert done.returncode == 0, machines.failure_text(f"{words}: {done.stderr}")


def role_of(view: Document, name: str) -> str:
    return next(node["role"] for node in view["nodes"] if node["name"] == name)


async def test_two_halves_go_on_alone_and_are_one_again_with_both_histories(
    tmp_path: Path,
) -> None:
    async with machines_on(4, tmp_path) as machines:
        await machines.one_cluster(JOIN_S)
        near, far = machines.machines[:2], machines.machines[2:]
        links.separate([machine.host for machine in far])
        for half in (near, far):
            await machines.until_all(lead_themselves, "each half has a leader", APART_S, half)
        order(machines, near[0], "cluster", "rename", "attic")
        order(machines, near[1], "node", "role", far[0].name, "idle")
        order(machines, far[0], "cluster", "close")
        order(machines, far[1], "cluster", "rename", "cellar")
        order(machines, far[1], "node", "role", near[0].name, "generator")

        links.heal([machine.host for machine in far])

        def have_both_histories(views: Views) -> bool:
            return are_one(views) and all(
                view is not None
                and view["cluster"]["name"] in ("attic", "cellar")
                and not view["cluster"]["open"]
                and role_of(view, far[0].name) == "idle"
                and role_of(view, near[0].name) == "generator"
                for view in views
            )

        views = await machines.until_all(have_both_histories, "both histories", HEALED_S)
        assert len({view["cluster"]["name"] for view in views}) == 1, "all agree on one of the two"
        assert not any(map(wrong, views))
