"""A machine waits outside a closed cluster until somebody on any member approves it."""

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.e2e.membership.test_members import sees
from tests.support.daemons.cluster import LOOK_S, NAMES, Cluster, Daemon, Document, running
from tests.support.daemons.surroundings import own_network

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.timeout(150),
]

SOON_S = 3.0
"""From approval to membership."""

SLACK_S = 3.0
"""A loaded machine takes longer; the figure is printed."""


def words_of(name: str) -> Callable[[Document], str | None]:
    def words(view: Document) -> str | None:
        shown = [node for node in view["nodes"] if node["name"] == name]
        return shown[0].get("words") if shown and shown[0]["state"] == "pending" else None

    return words


async def agreed_words(newcomer: Daemon, members: Sequence[Daemon], unlike: str = "") -> str:
    """Wait until the newcomer and every member show the same words; return them."""
    async with asyncio.timeout(40):
        while True:
            views = [await daemon.ask() for daemon in (newcomer, *members)]
            if all(view is not None for view in views):
                own, *others = (view for view in views if view is not None)
                shown = {own["node"]["words"], *map(words_of(newcomer.name), others)}
                (words, *differing) = shown
                if words and not differing and words != unlike:
                    return words
            await asyncio.sleep(LOOK_S)


async def closed_pair(daemons: Sequence[Daemon]) -> tuple[Cluster, Daemon, Daemon]:
    """Let two daemons become a closed cluster; return it with leader and follower."""
    cluster = Cluster(daemons)
    await cluster.say_yes(daemons[:2])
    view = (await cluster.meet(among=daemons[:2]))[0]
    leader = cluster.by_id(view["cluster"]["leader"], view)
    assert cluster.ctl("cluster", "close", daemon=leader).returncode == 0
    (follower,) = (daemon for daemon in daemons[:2] if daemon is not leader)
    await sees(follower, lambda view: not view["cluster"]["open"])
    return cluster, leader, follower


def other_words(words: str) -> str:
    first, *rest = words.split()
    return " ".join(["zoo" if first != "zoo" else "abandon", *rest])


@pytest.mark.smoke
async def test_a_newcomer_is_approved_on_a_follower_by_its_words(tmp_path: Path) -> None:
    with own_network() as prefix:
        daemons = [Daemon(tmp_path, name, prefix) for name in NAMES]
        newcomer = daemons[2]
        async with running(daemons[:2]):
            cluster, leader, follower = await closed_pair(daemons)
            try:
                newcomer.start()
                words = await agreed_words(newcomer, (leader, follower))
                view = await sees(newcomer, lambda view: bool(view["health"]))
                (waits,) = (item for item in view["health"] if item["code"] == "pending-locally")
                assert words in waits["title"]
                assert waits["hint"].endswith(f"jupiterctl node approve {newcomer.name}")

                wrong = ("node", "approve", newcomer.name, "--words", other_words(words))
                refused = cluster.ctl(*wrong, daemon=follower)
                assert (refused.returncode, refused.stdout) == (5, "")
                assert f"aren't the words of {newcomer.name}" in refused.stderr
                view = await sees(leader, lambda view: words_of(newcomer.name)(view) == words)
                assert view["cluster"]["nodes_total"] == 2

                right = ("node", "approve", newcomer.name, "--words", words)
                done = cluster.ctl(*right, daemon=follower)
                approved_s = time.monotonic()
                assert (done.returncode, done.stdout) == (0, f"{newcomer.name} is let in\n")
                for daemon in daemons:
                    await sees(daemon, lambda view: view["cluster"]["nodes_alive"] == 3)
                took_s = time.monotonic() - approved_s
                print(f"approved -> alive in all views: {took_s:.2f} s")
                assert took_s < SOON_S + SLACK_S
                for view in await cluster.meet():
                    assert {node["state"] for node in view["nodes"]} == {"alive"}
                    assert view["node"]["words"] is None
                    assert not [item for item in view["health"] if "wait" in item["code"]]
            finally:
                await asyncio.to_thread(newcomer.end)


async def test_a_new_leader_takes_the_newcomer_over_and_lets_it_in(tmp_path: Path) -> None:
    with own_network() as prefix:
        daemons = [Daemon(tmp_path, name, prefix) for name in NAMES]
        newcomer = daemons[2]
        async with running(daemons[:2]):
            cluster, leader, follower = await closed_pair(daemons)
            try:
                newcomer.start()
                before = await agreed_words(newcomer, (leader, follower))
                leader.kill()
                killed_s = time.monotonic()
                words = await agreed_words(newcomer, (follower,), unlike=before)
                print(f"leader killed -> new words: {time.monotonic() - killed_s:.2f} s")
                right = ("node", "approve", newcomer.name, "--words", words)
                assert cluster.ctl(*right, daemon=follower).returncode == 0
                for daemon in (follower, newcomer):
                    await sees(daemon, lambda view: view["cluster"]["nodes_alive"] == 2)
                leader.start()
                await cluster.meet()
            finally:
                await asyncio.to_thread(newcomer.end)
