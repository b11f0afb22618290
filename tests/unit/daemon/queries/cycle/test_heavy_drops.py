"""Alarms about phases that dropped more than half."""

from dataclasses import replace
from pathlib import Path

from jupiterd.daemon.app.node import Node
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.ids import CycleId
from tests.support.cluster.building import CYCLE, commanded, started, work_done
from tests.support.daemon.two_nodes import found, serving

COUNTS = {"kept": 12.0, "dropped": 188.0, "dropped.few-letters": 180.0, "dropped.symbols": 8.0}
FILTERED = replace(work_done("r1/filter/0"), counts=COUNTS)
TOLD = "filter dropped 188 of 200 texts (94 %): few-letters 180, symbols 8"


def alarms(node: Node, after_s: float = 0.0) -> list[str]:
    node.observers.alerts.look(now_s() + after_s)
    told = node.observers.alerts.raised
    return [alert.title for alert in told if alert.code == "mostly-dropped"]


async def test_what_was_dropped_is_in_health_and_among_the_events(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(started(),))
        alarms(one)
        one.observers.events.look()
        await one.replica.append(1, [FILTERED])
        assert alarms(one) == [f"round 1 of the cycle python: {TOLD}"]
        one.observers.events.look()
        (event,) = [
            row
            for row in one.observers.events.document()["events"]
            if row["code"] == "mostly-dropped"
        ]
        assert (event["level"], event["cycle"]) == ("warning", CYCLE)
        assert event["text"] == f"alert: round 1 of the cycle python: {TOLD}"


async def test_as_long_as_the_cycle_goes_on_it_is_told_and_then_for_an_hour(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(started(), FILTERED))
        assert len(alarms(one)) == 1
        assert len(alarms(one, 7200.0)) == 1
        await one.replica.append(1, [commanded("stopped", 1)])
        assert len(alarms(one, 7201.0)) == 1, "it has just ended"
        assert alarms(one, 15_000.0) == []


async def test_a_newer_cycle_ends_it(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(started(), FILTERED, commanded("stopped", 1)))
        later = replace(started(), cycle=CycleId("e" * 16), started_at="2026-02-01T00:00:00Z")
        await one.replica.append(1, [later])
        assert alarms(one) == []
