"""How soon machines are one cluster: when all are new, when one returns, when two halves meet."""

import subprocess
import sys
import time

from tests.bench.cluster.machines import (
    START_TIMEOUT_S,
    looking_at,
    settled_machines,
    started_machines,
    until_answering,
)
from tests.bench.figure import Figure, Goal
from tests.support.network import links
from tests.support.network.machines import Machine, Machines, Views, agree, state_of

MACHINES = 3
HALVES = 4
APART_TIMEOUT_S = 40.0


async def switch_on_together() -> float:
    """Return the seconds from starting three fresh daemons to their being one cluster."""
    async with started_machines(MACHINES) as (machines, began_s):
        for machine in machines.machines:
            await until_answering(machine)
        async with looking_at(machines.machines) as looks:
            return await looks.until(agree, START_TIMEOUT_S) - began_s


async def return_to_the_others() -> float:
    """Return the seconds from starting a member again to all three agreeing."""
    async with settled_machines(MACHINES) as machines:
        (view, *_) = await machines.views()
        assert view is not None
        member = machines.but(machines.leader(view))[0]
        member.end()
        _tell_how_long_python_takes()
        began_s = time.monotonic()
        member.start()
        await until_answering(member)
        answers_s = time.monotonic() - began_s
        async with looking_at(machines.machines) as looks:
            joined_s = await looks.until(agree, START_TIMEOUT_S) - began_s
        print(f"  the daemon's control socket answers {answers_s:.2f} s after its process began")
        return joined_s


def _tell_how_long_python_takes() -> None:
    began_s = time.monotonic()
    subprocess.run([sys.executable, "-c", "import jupiterd.daemon.app.node"], check=True)
    print(f"  python and the daemon's imports alone take {time.monotonic() - began_s:.2f} s")


async def heal() -> float:
    """Return the seconds from joining two halves, each with facts of its own, to one view."""
    async with settled_machines(HALVES) as machines:
        near, far = machines.machines[: HALVES // 2], machines.machines[HALVES // 2 :]
        links.separate([machine.host for machine in far])
        for half, others in ((near, far), (far, near)):
            await _miss(machines, half, others)
        for half, name in ((near, "near"), (far, "far")):
            done = machines.ctl("cluster", "rename", name, daemon=half[0])
            assert done.returncode == 0, done.stderr
        async with looking_at(machines.machines) as looks:
            began_s = time.monotonic()
            links.heal([machine.host for machine in far])
            return await looks.until(agree, APART_TIMEOUT_S) - began_s


async def _miss(machines: Machines, half: list[Machine], others: list[Machine]) -> None:
    """Wait until this half has a leader of its own and has given the others up."""
    names = {machine.name for machine in others}

    def has_given_up(views: Views) -> bool:
        return (
            all(
                view is not None
                and view["cluster"]["leader"] is not None
                and all(
                    state_of(view, node["id"]) == "gone"
                    for node in view["nodes"]
                    if node["name"] in names
                )
                for view in views
            )
            and len({view["cluster"]["leader"] for view in views if view}) == 1
        )

    await machines.until_all(has_given_up, "each half alone", APART_TIMEOUT_S, half)


FIGURES = (
    Figure(
        "three new machines switched on together, one cluster",
        "s",
        (Goal(0.5, 3.0), Goal(0.95, 5.0)),
        switch_on_together,
    ),
    Figure(
        "a known machine joins a running cluster",
        "s",
        (Goal(0.5, 1.5), Goal(0.95, 3.0)),
        return_to_the_others,
    ),
    Figure("two halves of two heal: one view, one head", "s", (Goal(0.95, 10.0),), heal, 5),
)
