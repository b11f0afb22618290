"""A call that hangs holds nobody up."""

import threading

import pytest

from jupiterd.hardware.time_limit import LimitedCall


def test_a_call_that_hangs_is_given_up_and_no_second_one_is_started() -> None:
    may_answer, calls = threading.Event(), []

    def hangs() -> str:
        calls.append(threading.current_thread())
        may_answer.wait()
        return "an answer"

    limited = LimitedCall(hangs)
    assert limited.within(0.01) is None
    assert limited.within(60.0) is None
    assert len(calls) == 1
    may_answer.set()
    calls[0].join()
    assert limited.within(60.0) == "an answer"
    assert all(thread.daemon for thread in calls), "or it would hold up the end of the program"


def test_what_it_raises_reaches_its_caller() -> None:
    def broken() -> int:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        LimitedCall(broken).within(60.0)
