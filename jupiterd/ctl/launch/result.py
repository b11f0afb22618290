"""The result of a launch as a document for programs: each rank's machine, exit status and time.

Owns collecting it while the launch runs. Doesn't know how a rank is followed, or who reads it.
"""

import signal
import time
from dataclasses import dataclass
from typing import Any, Final

from jupiterd.ctl.launch.described import launch_document
from jupiterd.ctl.launch.places import Prepared
from jupiterd.processes.scripts.events import Ended, ScriptEvent

STATUS_OF_SIGNAL: Final = 128


@dataclass(frozen=True)
class _End:
    status: int
    after_s: float


class LaunchResult:
    """The result of one launch; its last attempt counts."""

    def __init__(self, launch: str) -> None:
        self._launch = launch
        self._prepared: Prepared | None = None
        self._restarts = 0
        self._began_s = self._try_began_s = time.monotonic()
        self._ends: dict[int, _End] = {}

    def began(self, prepared: Prepared, restarts: int) -> None:
        """Start a new attempt: forget the ranks' ends of the one before."""
        self._prepared, self._restarts = prepared, restarts
        self._try_began_s = time.monotonic()
        self._ends = {}

    def take(self, event: ScriptEvent) -> None:
        """Note the end of a rank; ignore other events."""
        if isinstance(event, Ended):
            self._ends[event.rank] = _End(event.status, time.monotonic() - self._try_began_s)

    def document(self, status: int, reason: str) -> dict[str, Any]:
        """Return the document; empty if no attempt began.

        Args:
            status: the exit status of the command.
            reason: why the status isn't 0; empty if it is.
        """
        if self._prepared is None:
            return {}
        document = launch_document(self._prepared)
        document["launch"] |= {
            "id": self._launch,
            "status": status,
            "reason": reason or None,
            "restarts": self._restarts,
            "seconds": round(time.monotonic() - self._began_s, 3),
            "ranks": self._ranks(self._prepared),
        }
        return document

    def _ranks(self, prepared: Prepared) -> list[dict[str, Any]]:
        return [
            {
                "rank": rank.rank,
                "node": place.node or None,
                "name": place.name,
                **_ended(self._ends.get(rank.rank)),
            }
            for place, order in zip(prepared.places, prepared.orders, strict=True)
            for rank in order.ranks
        ]


def _ended(end: _End | None) -> dict[str, Any]:
    """Return the fields about a rank's end; all are None if the rank was lost."""
    if end is None:
        return {"status": None, "signal": None, "seconds": None}
    number = end.status - STATUS_OF_SIGNAL
    is_signal = number in set(signal.Signals)
    return {
        "status": end.status,
        "signal": signal.Signals(number).name if is_signal else None,
        "seconds": round(end.after_s, 3),
    }
