"""The line that an evaluation shows while it computes."""

import threading

import pytest

from jupiterd.ctl.invocation import Invocation
from jupiterd.ctl.model import eval_progress
from jupiterd.ctl.model.eval_progress import PATIENCE_S, EvalProgress, Pace
from jupiterd.ctl.output.console import Console


def line(pace: Pace, now_s: float) -> str:
    return pace.line("python/2", "texts", now_s)


def test_while_nothing_is_known_the_seconds_are_told():
    assert line(Pace(10.0), 17.0) == "python/2: loading, 7.0 s"


def test_the_time_left_follows_from_what_was_done_since_the_model_was_there():
    pace = Pace(0.0)
    pace.took(0, 40, 60.0)  # loading took a minute, which isn't to come again
    assert line(pace, 61.0) == "python/2: 0 of 40 texts, 1 min 01 s so far"
    pace.took(10, 40, 80.0)
    assert line(pace, 80.0) == "python/2: 10 of 40 texts, about 1 min 00 s left"
    assert line(pace, 90.0) == "python/2: 10 of 40 texts, about 50 s left"
    pace.took(40, 40, 140.0)
    assert line(pace, 140.0) == "python/2: 40 of 40 texts"


def test_while_nothing_moves_no_time_is_promised():
    pace = Pace(0.0)
    pace.took(0, 40, 0.0)
    pace.took(10, 40, 20.0)
    late_s = 20.0 + 2 * PATIENCE_S + 1
    assert line(pace, late_s) == "python/2: 10 of 40 texts, nothing new for 41 s"
    pace.took(11, 40, late_s)
    assert "about" in line(pace, late_s), "and it goes on"


def test_what_was_known_before_costs_no_time():
    pace = Pace(0.0)
    pace.took(30, 40, 5.0)
    pace.took(35, 40, 15.0)
    assert line(pace, 15.0) == "python/2: 35 of 40 texts, about 10 s left"


def test_a_terminal_is_told_at_once_and_every_second(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(eval_progress, "TICK_S", 0.01)
    console = Console("table", Invocation())
    monkeypatch.setattr(Console, "can_pass", True)
    said: list[str] = []
    enough = threading.Event()

    def passing_notice(_: Console, text: str) -> None:
        said.append(text)
        if len(said) == 4:
            enough.set()

    monkeypatch.setattr(Console, "passing_notice", passing_notice)
    with EvalProgress(console, "python/2", "texts", now=lambda: 1.0):
        assert said[0] == "python/2: loading, 0.0 s"
        assert enough.wait(10), "it is told while the worker says nothing"
    count = len(said)
    assert "progress" not in {each.name for each in threading.enumerate()}
    assert len(said) == count, "and not after it"
