"""A machine whose own link is out says so, and asks nobody to wake the others."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.support.daemons.cluster import Document
from tests.support.network import links
from tests.support.network.lab import interface
from tests.support.network.machines import Views, machines_on

pytestmark = pytest.mark.timeout(120)

JOIN_S = 15.0
TOLD_S = 20.0
LOOK_S = 60.0
OF_OTHERS = {"node-gone", "node-suspect"}


async def test_a_machine_without_a_link_says_so_until_it_is_back(tmp_path: Path) -> None:
    async with machines_on(3, tmp_path) as machines:
        (view, *_) = await machines.one_cluster(JOIN_S)
        out = machines.but(machines.leader(view))[0]
        device, others = interface(0), machines.but(out)
        links.pull(out.host)
        line = f"this machine's {device} has no link (cable out?): it reaches no other"
        await machines.until_all(
            lambda views: titles(views) == [line], "the cable is told", TOLD_S, [out]
        )
        ill = machines.ctl("status", "--check", "--node", "self", daemon=out)
        assert ill.returncode, "it is this machine's own trouble"
        examined = await asyncio.to_thread(
            machines.ctl, "doctor", "-o", "json", daemon=out, timeout_s=LOOK_S
        )
        found = {row["check"]: row for row in json.loads(examined.stdout)["findings"]}
        assert line in found["health/link-out"]["why"]
        assert "own link is out" in found["ports"]["why"]
        assert "wake" not in examined.stdout
        views = await machines.views(others)
        assert all("link-out" not in codes(each) for each in views)
        assert all(OF_OTHERS & codes(each) for each in views), "they tell of it as ever"

        out.host.inside.ip(f"link set {device} down")
        line = f"this machine's {device} is switched off: it reaches no other"
        await machines.until_all(lambda views: titles(views) == [line], "it is told", TOLD_S, [out])
        out.host.inside.ip(f"link set {device} up")
        links.plug(out.host)
        await machines.until_all(
            lambda views: not any(codes(view) & {"link-out", *OF_OTHERS} for view in views),
            "all is well again",
            TOLD_S,
        )
        await machines.one_cluster(JOIN_S)


def codes(view: Document | None) -> set[str]:
    """Return the codes of what a machine says is wrong; as if of others where it doesn't answer."""
    return {"node-gone"} if view is None else {line["code"] for line in view["health"]}


def titles(views: Views) -> list[str]:
    """Return what one machine says of links and of others."""
    (view,) = views
    told = [] if view is None else view["health"]
    return [line["title"] for line in told if line["code"] in {"link-out", *OF_OTHERS}]
