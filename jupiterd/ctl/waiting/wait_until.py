"""Polls a condition until it is true or the time limit has passed.

Owns the pause between checks, and the limit. Doesn't know the condition.
"""

import time
from collections.abc import Callable
from threading import Event

from jupiterd.errors import TimedOutError

LOOK_S = 1.0


def wait_until_done(look: Callable[[], TimedOutError | None], timeout_s: float | None) -> None:
    """Return once `look` returns None.

    Args:
        look: returns None if the condition is true, else the error for the end of the time limit.
        timeout_s: the time limit, in seconds; None: no limit.

    Raises:
        TimedOutError: the time limit has passed; it is the last error that `look` returned.
    """
    deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
    while (error := look()) is not None:
        if deadline_s is not None and time.monotonic() >= deadline_s:
            raise error
        pause(LOOK_S)


def pause(seconds: float) -> None:
    """Sleep for `seconds`; Ctrl-C ends the sleep."""
    Event().wait(seconds)
