"""A machine is drained while it trains: the others go on from the step that was just finished."""

from pathlib import Path

import pytest

from tests.support.daemons.cluster import NAMES, Daemon, Document, running
from tests.support.daemons.surroundings import own_network
from tests.support.sources.tiny_domain import write_domain
from tests.support.strikes.wholeness import assert_whole

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.timeout(300),
]

STEPS = 300
"""Enough that all of it happens before the end, however fast the machine."""

LEAVES_S = 30.0
"""In truth a second or two; the machine may be busy."""


async def test_the_gang_goes_on_without_whom_is_drained_and_waits_where_all_are(
    tmp_path: Path,
) -> None:
    domain = write_domain(tmp_path, steps=STEPS)
    with own_network() as prefix:
        daemons = [Daemon(tmp_path, name, prefix) for name in NAMES[:2]]
        async with running(daemons) as cluster:
            view, *_ = await cluster.meet()

            def names(cycle: Document) -> list[str]:
                return [cluster.by_id(seat["node"], view).name for seat in cycle["gang"]]

            started = cluster.ctl("cycle", "start", "--domain", str(domain), "--seed", "7")
            assert started.returncode == 0, started.stderr
            seen = await cluster.until(
                lambda cycle: len(cycle["gang"]) == 2 and cycle["step"] >= 20, "step 20", 120
            )
            first, second = names(seen)
            typed = f"jupiterctl --state-dir {cluster[0].state_dir} node resume"
            drained = cluster.ctl("node", "drain", first)
            assert drained.stdout.splitlines() == [
                f"{first} gets no new work, and leaves what trains after the running step",
                f"end that with: {typed} {first}",
            ]
            alone = await cluster.until(
                lambda cycle: cycle["epoch"] == 2 and names(cycle) == [second], "one", LEAVES_S
            )
            assert alone["resumed_from_step"] >= seen["step"], "a finished step was lost"
            assert any(f"{first} is drained" in event["text"] for event in alone["events"])

            said = cluster.ctl("node", "drain", second).stdout
            assert "nobody else can work just now: what runs waits until then" in said
            await cluster.until(
                lambda cycle: any(
                    "drained" in (row.get("detail") or "") for row in cycle["phases"]
                ),
                "that it waits",
                LEAVES_S,
            )
            shown = cluster.ctl("cycle", "status").stdout
            told = f"{NAMES[0]}, {NAMES[1]} are drained, and nobody else can train; to let it go on"
            assert f"{told}: {typed} {NAMES[0]}" in shown

            assert cluster.ctl("node", "resume", first).returncode == 0
            again = await cluster.until(
                lambda cycle: cycle["epoch"] == 3 and names(cycle) == [first], "the other", LEAVES_S
            )
            assert again["resumed_from_step"] >= alone["step"]
            assert cluster.ctl("node", "resume", second).returncode == 0
            ended = await cluster.until(lambda cycle: cycle["state"] != "running", "the end", 120)
            assert ended["state"] == "finished", cluster.failure_text(str(ended["failure"]))
            await cluster.meet()
            (cycle,) = cluster[0].state().cycles.values()
            await assert_whole(cluster, cycle, STEPS, tmp_path)
