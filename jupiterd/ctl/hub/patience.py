"""Retries of requests that the hub refuses with HTTP 429, after the wait that the hub requests.

Owns the number of retries and the waits. Doesn't know the requests. Downloads of weights don't use
this: the library waits there itself.
"""

import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from jupiterd.ctl.hub.asking import TOO_OFTEN

TIMES: Final = 4
"""The highest number of attempts."""
LONGEST_S: Final = 120.0
"""The longest total wait, in seconds; if the hub asks for more, its error is raised."""
USUAL_S: Final = 10.0
"""Seconds to wait if the hub names no time in seconds."""

Reply = TypeVar("Reply")


def patiently(
    ask: Callable[[], Reply],
    notify: Callable[[str], None],
    sleep: Callable[[float], None] = time.sleep,  # noqa: TID251 - the hub says for how long
) -> Reply:
    """Return the hub's answer; raise the library's exception if the retries don't help.

    Args:
        ask: makes the request.
        notify: gets a line about each wait.
        sleep: waits for the given number of seconds.
    """
    left_s = LONGEST_S
    for _ in range(TIMES - 1):
        try:
            return ask()
        except Exception as error:
            wait_s = _wait_s(error)
            if wait_s is None or wait_s > left_s:
                raise
        if wait_s:
            notify(f"the hub was asked too often for now: it is asked again in {wait_s:g} s")
        sleep(wait_s)
        left_s -= wait_s
    return ask()


def _wait_s(error: Exception) -> float | None:
    """Return how many seconds the hub wants us to wait; None: it refused for another reason."""
    for each in (error, error.__cause__):
        response = getattr(each, "response", None)
        if getattr(response, "status_code", 0) == TOO_OFTEN:
            return _retry_after_s(response)
    return None


def _retry_after_s(response: Any) -> float:  # noqa: ANN401 - of the library's HTTP client
    after = str(getattr(response, "headers", {}).get("Retry-After", ""))
    return float(after) if after.isdecimal() else USUAL_S
