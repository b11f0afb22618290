"""What health and the log tell of strangers at a gang's ports."""

import logging

import pytest

from jupiterd.cluster.health.alerts import TABLE
from jupiterd.cluster.text.health_words import WELL_ANYWAY
from jupiterd.daemon.links import refused_connections
from jupiterd.daemon.links.refused_connections import (
    CODE,
    MAX_DETAIL,
    REPORTED_S,
    RefusedConnections,
    refused_finding,
)
from jupiterd.ids import NodeId
from jupiterd.protocol.frames import ConnectionsRefused

NODE = NodeId("a" * 32)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(refused_connections, "now_s", lambda: now[0])
    return now


def details(seen: RefusedConnections) -> list[str]:
    return [finding.detail for finding in refused_finding(NODE, "attic", seen.detail(), "s1")]


def test_health_counts_tries_and_names_whom_it_can_for_an_hour(clock: list[float]) -> None:
    seen = RefusedConnections()
    assert details(seen) == []
    seen.note(ConnectionsRefused(1), "run/0")
    assert details(seen) == ["1 try"]
    seen.note(
        ConnectionsRefused(1999, ["10.0.0.9", "10.0.0.9", "\x1b[2J", "fe80::1%eth0"]), "run/0"
    )
    assert details(seen) == ["2,000 tries, of 10.0.0.9, fe80::1%eth0"]
    seen.note(ConnectionsRefused(3, [f"10.0.1.{number}" for number in range(200)]), "run/0")
    assert details(seen) == ["2,003 tries, of 10.0.0.9, fe80::1%eth0, 10.0.1.0, 61 other addresses"]
    clock[0] += REPORTED_S + 1
    assert details(seen) == []
    seen.note(ConnectionsRefused(2), "run/0")
    assert details(seen) == ["2 tries"], "what was told is over"


def test_a_flood_is_one_line_a_minute(clock: list[float], caplog: pytest.LogCaptureFixture) -> None:
    seen = RefusedConnections()
    caplog.set_level(logging.WARNING)
    for _ in range(100):
        seen.note(ConnectionsRefused(5), "run/0")
    assert [record.message for record in caplog.records] == ["stranger_at_gang"]
    clock[0] += 60
    seen.note(ConnectionsRefused(5), "run/0")
    assert len(caplog.records) == 2


def test_it_is_an_alarm_that_makes_nobody_ill() -> None:
    assert "no member" in TABLE[CODE].title
    assert CODE in WELL_ANYWAY


@pytest.mark.parametrize("odd", [None, 7, [], {"x": 1}, ""])
def test_odd_words_of_a_member_are_nothing(odd: object) -> None:
    assert list(refused_finding(NODE, "attic", odd, "s1")) == []


def test_a_member_s_words_are_short_and_plain() -> None:
    (finding,) = refused_finding(NODE, "attic", "\x1b[2J" + "9" * 5000, "s1")
    assert finding.detail.isprintable()
    assert len(finding.detail) <= MAX_DETAIL


def test_another_try_is_another_cause_and_so_is_one_after_a_restart() -> None:
    tries = ("1 try", "s1"), ("2 tries", "s1"), ("1 try", "s2")
    causes = [f.cause for said in tries for f in refused_finding(NODE, "attic", *said)]
    assert len(set(causes)) == 3
