"""Waits until a node has no more work.

Owns that condition. Doesn't drain the node.
"""

from pathlib import Path

from jupiterd.ctl.waiting.wait_until import wait_until_done
from jupiterd.errors import TimedOutError
from jupiterd.formats import plain


def wait_until_idle(state_dir: Path, node: str, timeout_s: float | None) -> None:
    """Return once a node answers and none of our work runs on it.

    Raises:
        TimedOutError: it still works, or doesn't answer; its work goes on.
    """
    wait_until_done(lambda: _still_works(state_dir, node), timeout_s)


def _still_works(state_dir: Path, node: str) -> TimedOutError | None:
    from jupiterd.ctl.calls import ask

    document = ask(state_dir, f"node/{node}")
    running, note = document["processes"], document["note"]
    if running == [] and not note:
        return None
    name = plain(document["node"]["name"])
    tasks = ", ".join(sorted({plain(row["task"]) for row in running or ()}))
    what = f"{name} still works: {tasks}" if tasks else f"{name} says nothing: {plain(note)}"
    return TimedOutError(what, f"the work goes on; look at it: jupiterctl node show {name}")
