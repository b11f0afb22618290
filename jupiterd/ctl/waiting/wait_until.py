"""Looking again and again until what was ordered has come to pass, or the time is up.

Owns the pause between looks, and the limit. Doesn't know what is waited for.
"""

import time
from collections.abc import Callable
from threading import Event

from jupiterd.errors import TimedOutError

LOOK_S = 1.0


def wait_until_done(look: Callable[[], TimedOutError | None], timeout_s: float | None) -> None:
    """Return once a look finds nothing that is still to come.

    Args:
        look: returns None once it is done, and until then what is said where the time is up.
        timeout_s: how long to wait; None waits for ever.

    Raises:
        TimedOutError: what the last look returned.
    """
    deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
    while (error := look()) is not None:
        if deadline_s is not None and time.monotonic() >= deadline_s:
            raise error
        pause(LOOK_S)


def pause(seconds: float) -> None:
    """Let so long pass; Ctrl-C ends it."""
    Event().wait(seconds)
