"""Ending alarms that people have seen, as they type it."""

import pytest

ROWS = [{"key": "verdict:c/1", "code": "verdict", "title": "round 1\x1b[2J: HOLD"}]


@pytest.mark.parametrize("names", [[], ["verdict"], ["verdict", "attic"]])
def test_dismiss_says_which_alarms_are_told_no_more(daemon, ctl, names):
    daemon.results["alarm.dismiss"] = {"dismissed": ROWS}
    ran = ctl("dismiss", *names)
    assert ran.out.startswith("dismissed verdict: round 1")
    assert "\x1b" not in ran.out
    assert daemon.executed == [("alarm.dismiss", {"names": names})]
