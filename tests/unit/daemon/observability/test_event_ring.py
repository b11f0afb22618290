"""What a daemon has seen happen."""

from dataclasses import replace
from datetime import datetime
from pathlib import Path

from jupiterd.cluster.facts.facts import CycleFailed
from jupiterd.daemon.observability.event_ring import MAX_EVENTS, EventRing
from jupiterd.ids import CycleId
from tests.support.cluster.building import commanded, started
from tests.support.daemon.shown import shown
from tests.support.daemon.two_nodes import found, serving


async def test_what_happened_since_the_daemon_looks_is_kept_with_its_time(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one)
        one.observers.events.look()
        assert (await shown(one, "events"))["events"] == [], "the first look is no news"
        await one.replica.append(2, [started()])
        one.observers.events.look()
        events = (await shown(one, "events"))["events"]
        assert "run-started" in [event["code"] for event in events]
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
        assert datetime.fromisoformat(events[0]["at"]).tzinfo is not None


async def test_the_end_of_a_run_is_told_though_another_one_is_shown(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        own, other = started(), replace(started(), cycle=CycleId("e" * 16))
        await found(one, facts=(own, commanded("paused", 1)))
        one.observers.events.look()
        await one.replica.append(2, [other])
        one.observers.events.look()
        last = max(each["seq"] for each in one.observers.events.document()["events"])
        await one.replica.append(3, [CycleFailed(own.cycle, "empty-source", "no text", "look")])
        one.observers.events.look()
        told = [each for each in one.observers.events.document()["events"] if each["seq"] > last]
        assert [(each["code"], each["cycle"]) for each in told if each["cycle"]] == [
            ("run-failed", own.cycle)
        ]


async def test_events_outlive_their_daemon_and_count_on(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one)
        one.observers.events.look()
        await one.replica.append(2, [started()])
        one.observers.events.look()
        one.observers.events.save()
        before = one.observers.events.document()
        again = EventRing(one.state_dir.events, one.observers.sources)
        assert again.document() == before
        again._seen = {"cluster": {"leader": "another"}, "nodes": []}
        again.look()
        assert again.document()["events"][-1]["seq"] > before["events"][-1]["seq"]
        one.state_dir.events.write_text('{"since": "x", "events": [3]}')
        damaged = EventRing(one.state_dir.events, one.observers.sources)
        assert damaged.document()["events"] == [], "a damaged file costs no more than itself"


async def test_only_the_latest_are_kept(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        ring = one.observers.events
        for number in range(MAX_EVENTS + 5):
            ring._seen = {"cluster": {"leader": str(number)}, "nodes": []}
            ring.look()
        events = ring.document()["events"]
        assert len(events) == MAX_EVENTS
        assert events[-1]["seq"] > MAX_EVENTS
