"""`jupiterctl events`."""

import json

import pytest

from jupiterd.ctl import calls
from jupiterd.ctl.diagnose import events
from jupiterd.ctl.diagnose.events import new_rows
from jupiterd.errors import DaemonUnreachableError, TimedOutError

EVENTS = {
    "schema": "jupiter/v1",
    "since": "2026-01-01T00:00:00+00:00",
    "events": [
        {"seq": 1, "at": "2026-01-01T10:00:00+00:00", "level": "info", "code": "node-joined",
         "text": "ada is a member", "node": "aa", "cycle": None},
        {"seq": 2, "at": "2026-01-01T10:00:09+00:00", "level": "warning", "code": "node-gone",
         "text": "ada went away\x1b[2J", "node": "aa", "cycle": None},
    ],
}  # fmt: skip


@pytest.fixture
def daemon(daemon, monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    daemon.documents["events"] = EVENTS
    return daemon


def test_each_event_is_a_line_with_its_time_and_level(daemon, ctl):
    shown = ctl("events")
    assert (shown.exit_code, shown.err) == (0, "")
    first, second = shown.out.splitlines()
    assert first.endswith("info    ada is a member")
    assert second.endswith("warning ada went away?[2J")


def test_what_matters_less_can_be_left_out(daemon, ctl):
    assert len(ctl("events", "--level", "warning").out.splitlines()) == 1
    assert len(ctl("events", "-n", "1").out.splitlines()) == 1
    assert json.loads(ctl("events", "-o", "json").out)["events"] == EVENTS["events"]


def test_where_nothing_has_happened_the_log_of_what_was_before_is_named(daemon, ctl):
    shown = ctl("events", "--level", "error")
    assert (shown.exit_code, shown.out) == (0, "")
    assert shown.err == (
        "jupiterctl: nothing since 2026-01-01 00:00:00; what was before is in: jupiterctl logs\n"
    )
    assert ctl("events", "--level", "error", "-o", "jsonl").err == ""


def test_a_daemon_that_is_begun_anew_is_followed_on(daemon, ctl, monkeypatch):
    fresh = EVENTS | {"since": "2026-01-02T00:00:00+00:00", "events": EVENTS["events"][:1]}
    silent = DaemonUnreachableError("no jupiterd answers"), TimedOutError("no answer in time")
    answers = iter([EVENTS, *silent, fresh, fresh])

    def ask(*_: object) -> object:
        if isinstance(answer := next(answers, None), Exception):
            raise answer
        if answer is None:
            raise KeyboardInterrupt
        return answer

    monkeypatch.setattr(calls, "ask", ask)
    monkeypatch.setattr(events, "pause", lambda _: None)
    shown = ctl("events", "-f", "-n", "0")
    assert shown.exit_code == 130
    assert [line.endswith("ada is a member") for line in shown.out.splitlines()] == [True]
    assert shown.err.count("once it answers") == 1


def test_following_shows_only_what_came_and_all_of_a_daemon_that_began_anew():
    since = EVENTS["since"]
    assert [row["seq"] for row in new_rows(EVENTS, (since, 1))] == [2]
    assert [row["seq"] for row in new_rows(EVENTS, ("another", 7))] == [1, 2]
