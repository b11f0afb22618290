"""How long nobody has had the checkpoint that a running cycle's line ends in.

Owns the minute, on the leader's own clock: a new leader counts anew. Doesn't know who holds what,
or what is done then.
"""

from jupiterd.ids import CycleId

PARK_AFTER_S = 60.0


class Absences:
    """What one leader has seen missing, a checkpoint for each cycle."""

    def __init__(self) -> None:
        self._missing: dict[CycleId, tuple[str, float]] = {}

    def found(self, cycle: CycleId) -> None:
        """Take note that nothing is missing."""
        self._missing.pop(cycle, None)

    def is_over(self, now: float, cycle: CycleId, checkpoint: str) -> bool:
        """Take note that this one is missing; say whether it has been for so long that it counts.

        A gap in between, or another checkpoint, lets the minute begin anew.
        """
        known, since = self._missing.get(cycle, ("", now))
        since = since if known == checkpoint else now
        self._missing[cycle] = checkpoint, since
        return now - since >= PARK_AFTER_S
