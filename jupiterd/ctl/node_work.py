"""Waiting until a node does nothing any more.

Owns the looks and the limit. Doesn't know why it stops: whoever drained it does.
"""

import time
from pathlib import Path
from threading import Event

from jupiterd.errors import TimedOutError
from jupiterd.formats import plain

LOOK_S = 1.0


def wait_until_idle(state_dir: Path, node: str, timeout_s: float | None) -> None:
    """Return once none of our work runs on a node that answers.

    Raises:
        TimedOutError: it still works, or doesn't say; what it does goes on.
    """
    from jupiterd.ctl.calls import ask

    deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
    while True:
        document = ask(state_dir, f"node/{node}")
        running, note = document["processes"], document["note"]
        if running == [] and not note:
            return
        if deadline_s is not None and time.monotonic() >= deadline_s:
            name = plain(document["node"]["name"])
            tasks = ", ".join(sorted({plain(row["task"]) for row in running or ()}))
            what = (
                f"{name} still works: {tasks}" if tasks else f"{name} says nothing: {plain(note)}"
            )
            raise TimedOutError(what, f"the work goes on; look at it: jupiterctl node show {name}")
        pause(LOOK_S)


def pause(seconds: float) -> None:
    """Let so long pass; Ctrl-C ends it."""
    Event().wait(seconds)
