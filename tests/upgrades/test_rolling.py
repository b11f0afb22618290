"""Every order in which three machines may be upgraded, from three kinds of earlier program."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from jupiterd import __version__
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.store.layout import LAYOUT
from jupiterd.versions import series
from tests.support.daemons.cluster import NAMES, Cluster, Daemon, Document, running
from tests.support.daemons.earlier import Installed, commit_before, installed, last_commit_without
from tests.support.daemons.rolling import (
    NEW,
    Seen,
    all_replaced,
    all_run,
    assert_nothing_runs,
    assert_nothing_was_lost,
    begin_training,
    identities,
    in_order,
    refusal,
    replaced,
    stopped,
    trained,
)
from tests.support.daemons.surroundings import own_network

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not commit_before(), reason="no history to build the one before from"),
]

MOVE_TIMEOUT_S = 90.0
"""A leader steps aside twenty seconds after it was outnumbered, and the next elects itself."""

HERE = series(__version__) or (0, 0)
NEIGHBOUR = f"{HERE[0]}.{HERE[1] - 1}.9" if HERE[1] else f"{HERE[0]}.1.9"

FIRST_LAYOUT = last_commit_without("jupiterd/store/layout.py")


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return installed(tmp_path_factory.mktemp("before"), commit_before())


@pytest.fixture(scope="module")
def neighbour(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return installed(tmp_path_factory.mktemp("neighbour"), commit_before(), NEIGHBOUR)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return installed(tmp_path_factory.mktemp("first"), FIRST_LAYOUT)


async def upgraded(
    cluster: Cluster, folder: Path, leader_at: int, *, in_haste: bool = True
) -> tuple[CycleState, list[Seen]]:
    """Replace all three while they train; in haste, a next one while the last one still starts."""
    await cluster.meet()
    keys = identities(cluster)
    await begin_training(cluster, folder)
    seen: list[Seen] = []
    for daemon in await in_order(cluster, leader_at):
        if not in_haste:
            await trained(cluster, daemon, lambda run: len(run.get("gang") or ()) > 1, "two ranks")
        seen.append(await replaced(cluster, daemon, NEW))
    await cluster.meet()
    run = await stopped(cluster)
    assert_nothing_was_lost(cluster, run, seen)
    await all_run(cluster, __version__)
    assert identities(cluster) == keys
    return run, seen


async def upgraded_at_once(cluster: Cluster, folder: Path) -> None:
    """Stop all three while they train, and start the new program on all of their folders."""
    await cluster.meet()
    keys = identities(cluster)
    await begin_training(cluster, folder)
    await trained(cluster, cluster[0], lambda run: len(run.get("gang") or ()) > 1, "two ranks")
    seen = await all_replaced(cluster, NEW)
    run = await stopped(cluster)
    assert_nothing_was_lost(cluster, run, [seen])
    await all_run(cluster, __version__)
    assert identities(cluster) == keys


@pytest.mark.parametrize("leader_at", [0, 1, 2])
async def test_the_commit_before_is_upgraded_and_may_come_back(
    tmp_path: Path, before: Installed, leader_at: int
) -> None:
    with own_network() as prefix:
        daemons = [Daemon(tmp_path, name, prefix, command=before.command) for name in NAMES]
        async with running(daemons) as cluster:
            await upgraded(cluster, tmp_path, leader_at)
            cluster[1].stop()
            cluster[1].command = before.command
            cluster[1].start()
            await cluster.meet()
        assert_nothing_runs(tmp_path)


@pytest.mark.skipif(not FIRST_LAYOUT, reason="that far back no history is here")
@pytest.mark.parametrize("together", [False, True], ids=["leader first", "all at once"])
async def test_a_folder_of_the_first_layout_is_brought_up_to_date_and_its_program_refuses_it_then(
    tmp_path: Path, first: Installed, together: bool
) -> None:
    with own_network() as prefix:
        daemons = [Daemon(tmp_path, name, prefix, command=first.command) for name in NAMES]
        async with running(daemons) as cluster:
            if together:
                await upgraded_at_once(cluster, tmp_path)
            else:  # that program forgot its last steps where it trained alone and was told to stop
                await upgraded(cluster, tmp_path, 0, in_haste=False)
            cluster[1].stop()
            refused = refusal(first.command, cluster[1].state_dir)
            assert refused.returncode != 0
            assert f"has layout {LAYOUT} (jupiterd {__version__})" in refused.stderr
            cluster[1].start()  # the new one, which finds nothing changed
            await cluster.meet()
        assert_nothing_runs(tmp_path)


@pytest.mark.parametrize("leader_at", [0, 1, 2])
async def test_a_version_one_minor_before_is_upgraded_and_work_never_crosses_versions(
    tmp_path: Path, neighbour: Installed, leader_at: int
) -> None:
    with own_network() as prefix:
        daemons = [Daemon(tmp_path, name, prefix, command=neighbour.command) for name in NAMES]
        async with running(daemons) as cluster:
            await cluster.meet()
            await begin_training(cluster, tmp_path)
            order = await in_order(cluster, leader_at)
            seen = [await replaced(cluster, order[0], NEW)]
            await moved_to(cluster, NEIGHBOUR, order[1:])
            seen.append(await replaced(cluster, order[1], NEW))
            await moved_to(cluster, __version__, order[:2])
            seen.append(await replaced(cluster, order[2], NEW))
            await cluster.meet()
            await all_run(cluster, __version__)
            await seen_as(cluster, cluster[0], lambda view: not warnings(view))
            run = await stopped(cluster)
            assert_nothing_was_lost(cluster, run, seen)
        assert_nothing_runs(tmp_path)


def warnings(view: Document) -> list[Document]:
    """Return what is wrong; that machines walked in through the open door is news alone."""
    return [line for line in view["health"] if line["code"] != "node-walked-in"]


async def moved_to(cluster: Cluster, program: str, workers: list[Daemon]) -> None:
    """Wait until nodes of this version alone lead and work, and see it said everywhere."""
    names = {daemon.name for daemon in workers}
    (idle,) = {daemon.name for daemon in cluster.daemons} - names

    view = await workers[0].ask()
    assert view is not None
    ids = {node["id"] for node in view["nodes"] if node["name"] in names}

    def works_there(run: Document) -> bool:
        return bool(run.get("gang")) and {seat["node"] for seat in run["gang"]} <= ids

    for daemon in cluster.daemons:
        await seen_as(cluster, daemon, lambda view: is_told(view, names, idle, program))
    run = await trained(cluster, workers[0], works_there, f"work on {names}", MOVE_TIMEOUT_S)
    await trained(cluster, workers[0], lambda later: later["step"] > run["step"], "more steps")
    table = cluster.ctl("node", "list", daemon=workers[0]).stdout
    assert "it works again once both are alike" in table
    assert fails(cluster, workers[0]) >= {"versions"}


def is_told(view: Document, names: set[str], idle: str, program: str) -> bool:
    """Say whether everybody is here, who leads and works runs this, and the other one is named."""
    rows = {node["name"]: node for node in view["nodes"]}
    leaders = [name for name, node in rows.items() if node["id"] == view["cluster"]["leader"]]
    warned = [line["title"] for line in view["health"] if line["code"] == "version-differs"]
    return (
        set(leaders) <= names
        and {node["state"] for node in rows.values()} == {"alive"}
        and all(rows[name]["role"] != "idle" for name in names)
        and rows[idle]["role"] == "idle"
        and f"and the leader {program}" in rows[idle]["reason"]
        and [title.startswith(f"{idle} runs jupiterd ") for title in warned] == [True]
    )


async def seen_as(cluster: Cluster, asked: Daemon, is_so: Callable[[Document], bool]) -> None:
    """Wait until it holds of a daemon's status."""
    deadline_s, view = time.monotonic() + MOVE_TIMEOUT_S, None
    while time.monotonic() < deadline_s:
        view = await asked.ask()
        if view is not None and is_so(view):
            return
        await asyncio.sleep(0.2)
    raise AssertionError(cluster.failure_text(f"{asked.name} doesn't see it so: {view}"))


def fails(cluster: Cluster, asked: Daemon) -> set[str]:
    """Return the doctor's checks that fail."""

    told = cluster.ctl("doctor", "-o", "json", daemon=asked)
    found: list[Mapping[str, Any]] = json.loads(told.stdout)["findings"]
    return {finding["check"] for finding in found if finding["status"] == "fail"}
