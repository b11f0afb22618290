"""A hub that is asked too often: the first questions are put again when it says so, within bounds.

Owns how long that may take. Doesn't know what is asked, or how weights are fetched: there the
library waits by itself.
"""

import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from jupiterd.ctl.hub.asking import TOO_OFTEN

TIMES: Final = 4
"""Asked, at the most."""
LONGEST_S: Final = 120.0
"""Waited in all; a hub that wants more is told of, as one that can't be asked."""
USUAL_S: Final = 10.0
"""Where it doesn't say how long."""

Answer = TypeVar("Answer")


def patiently(
    ask: Callable[[], Answer],
    told: Callable[[str], None],
    sleep: Callable[[float], None] = time.sleep,  # noqa: TID251 - the hub says for how long
) -> Answer:
    """Return what the hub answers; raises what its library does.

    Args:
        ask: puts the question.
        told: hears of each wait, in a line.
        sleep: waits so many seconds.
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
            told(f"the hub was asked too often for now: it is asked again in {wait_s:g} s")
        sleep(wait_s)
        left_s -= wait_s
    return ask()


def _wait_s(error: Exception) -> float | None:
    """Return how long the hub wants us to wait; None: that isn't why it refused."""
    for each in (error, error.__cause__):
        response = getattr(each, "response", None)
        if getattr(response, "status_code", 0) == TOO_OFTEN:
            return _told_s(response)
    return None


def _told_s(response: Any) -> float:  # noqa: ANN401 - of the library's HTTP client
    after = str(getattr(response, "headers", {}).get("Retry-After", ""))
    return float(after) if after.isdecimal() else USUAL_S
