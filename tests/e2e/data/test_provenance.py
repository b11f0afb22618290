"""Where text comes from and that it can be taken back, asked of a real daemon in a real cycle."""

import json
from pathlib import Path

import pytest

from jupiterd.cycle.base.work_item import Phase
from tests.support.daemons.cluster import NAMES, Cluster, Daemon, running
from tests.support.daemons.surroundings import own_network
from tests.support.daemons.training_runs import write_letters
from tests.support.sources.tiny_domain import write_domain

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.timeout(300),
]

PURGED = "folder:code/package_03"


def packed(cluster: Cluster, round_number: int) -> str:
    """Return the shards of a round, or nothing as long as there are none."""
    (cycle,) = cluster[0].state().cycles.values()
    done = [fact for (number, _), fact in cycle.completed.items() if number == round_number]
    return next((str(fact.outputs["shards"]) for fact in done if fact.phase == Phase.PACK), "")


def asked(cluster: Cluster, *arguments: str, daemon: Daemon | None = None) -> dict:
    done = cluster.ctl("data", *arguments, "-o", "json", daemon=daemon)
    assert done.returncode == 0, cluster.failure_text(done.stdout + done.stderr)
    return json.loads(done.stdout)


def sources(cluster: Cluster, round_number: int) -> set[str]:
    """Return where the documents of a round's shards come from, asked token by token."""
    found: set[str] = set()
    offset = 0
    while True:
        done = cluster.ctl("data", "why", f"tiny/{round_number}:{offset}", "-o", "json")
        if done.returncode:
            assert "tokens, and none is number" in done.stderr
            return found
        why = json.loads(done.stdout)["why"]
        found.add(why["sample"]["source_uri"])
        offset = why["position"]["end"]


async def test_every_token_has_a_source_and_a_purged_one_is_gone_in_the_next_round(
    tmp_path: Path,
) -> None:
    domain = write_domain(tmp_path, steps=30)
    with own_network() as prefix:
        async with running([Daemon(tmp_path, "solo", prefix)]) as cluster:
            await cluster.meet()
            given = ("--domain", str(domain), "--rounds", "2", "--seed", "7")
            assert cluster.ctl("cycle", "start", *given).returncode == 0
            await cluster.recorded(lambda _: bool(packed(cluster, 1)), "round 1's shards", 90)
            done = cluster.ctl("data", "purge", "--source", PURGED, "--yes")
            assert done.returncode == 0, done.stderr
            await cluster.until(lambda cycle: cycle["state"] == "finished", "the end", 180)
            first, second = sources(cluster, 1), sources(cluster, 2)
            assert any(uri.startswith(f"{PURGED}/") for uri in first)
            assert not any(uri.startswith(f"{PURGED}/") for uri in second)
            assert second == {uri for uri in first if not uri.startswith(f"{PURGED}/")}
            (audit,) = asked(cluster, "audit")["audit"]
            ((proof,),) = (each["rounds"] for each in audit["purged"])
            assert (proof["round"], proof["samples"], proof["collected"]) == (2, 0, True)
            assert proof["left_out"] > 0
            assert audit["ok"] is True


async def test_every_node_tells_where_a_token_comes_from_though_it_lacks_the_shards(
    tmp_path: Path,
) -> None:
    letters = write_letters(tmp_path)
    with own_network() as prefix:
        async with running([Daemon(tmp_path, name, prefix) for name in NAMES]) as cluster:
            await cluster.meet()
            done = cluster.ctl("data", "prepare", str(letters), "--wait", "--timeout", "60")
            assert done.returncode == 0, cluster.failure_text(done.stderr)
            for each in cluster.daemons:  # the others hear of it a moment after the leader
                await cluster.recorded(lambda run: run.prepared is not None, "shards", 30, each)
            told = [asked(cluster, "why", "letters:99", daemon=each) for each in cluster.daemons]
            for document in told:
                document["why"].pop("elapsed_ms")
            shards = told[0]["why"]["position"]["shards"]
            assert not all(daemon.holds(shards) for daemon in cluster.daemons)
            assert told[0]["why"]["data_set"]["path"] == str(letters)
            assert told[0] == told[1] == told[2]
