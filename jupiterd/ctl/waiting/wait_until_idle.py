"""Waits until no machine works any more on a cycle or training that was paused or stopped.

Owns that condition: the leader runs no phase of it, so its last checkpoint is recorded, and no
reachable machine has a worker of it. Doesn't pause or stop anything.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jupiterd.ctl.output.progress_lines import ENDED_STATES, TITLES
from jupiterd.ctl.waiting.wait_until import wait_until_done
from jupiterd.errors import TimedOutError
from jupiterd.formats import plain
from jupiterd.ids import short

AT_REST = ENDED_STATES | {"paused"}
WORDS = ", and no machine works on it any more"
"""Appended to the text about an order if the command has waited."""

Document = Mapping[str, Any]


def wait_until_at_rest(state_dir: Path, noun: str, run: str, timeout_s: float | None) -> None:
    """Return once no machine works on a cycle or training any more.

    noun: cycle or train

    Raises:
        TimedOutError: a machine still works or doesn't answer; the order remains in force.
    """

    def look() -> TimedOutError | None:
        if not (why := _why_not(state_dir, noun, run)):
            return None
        hint = f"what was ordered stands; look at it: jupiterctl {noun} status"
        return TimedOutError(f"{TITLES[noun]} {short(run)} isn't at rest yet: {why}", hint)

    wait_until_done(look, timeout_s)


def stopped_line(*, is_at_rest: bool) -> str:
    """Return the line about a cycle or training that was stopped."""
    return f"stopped{WORDS if is_at_rest else ''}; what it has made stays"


def _why_not(state_dir: Path, noun: str, run: str) -> str:
    """Return why it isn't at rest yet; empty: it is."""
    from jupiterd.ctl.calls import ask

    found: Document = ask(state_dir, f"{noun}/{run}").get(noun) or {}
    if found.get("state") not in AT_REST:
        return "the order hasn't reached this machine"
    if found.get("phase"):
        return f"its phase {plain(found['phase'])} is being ended"
    parts: list[Document] = found.get("islands") or []
    ids = tuple(f"{short(each)}/" for each in (run, *(part.get("id") for part in parts)) if each)
    nodes: list[Document] = ask(state_dir, "status").get("nodes", [])
    alive = [str(node["id"]) for node in nodes if node.get("state") in ("alive", "suspect")]
    return ", ".join(work for node in alive for work in _works(ask(state_dir, f"node/{node}"), ids))


def _works(document: Document, ids: tuple[str, ...]) -> Iterator[str]:
    """Yield a text if a machine still works on one of these ids, or doesn't answer."""
    name = plain(document["node"]["name"])
    if document["processes"] is None or document["note"]:
        yield f"{name} says nothing: {plain(document['note'])}"
        return
    own = (row for row in document["processes"] if str(row["id"]).startswith(ids))
    if tasks := ", ".join(sorted({plain(row["task"]) for row in own})):
        yield f"{name} still does: {tasks}"
