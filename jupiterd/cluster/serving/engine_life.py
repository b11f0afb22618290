"""The life of one engine: loading, ready, ended.

Owns what follows what, when an idle engine is unloaded and when a failed one is tried again. Time
is told, in s. Doesn't know processes or requests.

    loading ──loaded──▶ ready ──told to end──▶ ended
       └────failed────────┴────────died──────▶ ended, with a reason
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

IDLE_S: Final = 600.0
"""An engine that nobody has asked for so long is unloaded."""

FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0
STEADY_S: Final = 30.0
"""An engine that died after so long had a good life, and may begin anew at once."""


class Phase(StrEnum):
    """Where an engine is in its life."""

    LOADING = "loading"
    READY = "ready"
    ENDED = "ended"


@dataclass(frozen=True)
class EngineLife:
    """One engine's phase, and how many answers it writes."""

    phase: Phase
    since_s: float
    """When the phase began."""
    answers: int = 0
    """That it writes now, or that wait for it to be loaded."""
    used_s: float = 0.0
    """When the last answer ended."""
    reason: str = ""
    """Why it ended; empty where it was told to."""

    @property
    def takes_requests(self) -> bool:
        """Say whether a new request may go to it, perhaps after it has loaded."""
        return self.phase in {Phase.LOADING, Phase.READY}

    def loaded(self, now_s: float) -> "EngineLife":
        """Return it after it has loaded its model; nothing changes in any other phase."""
        if self.phase is not Phase.LOADING:
            return self
        return replace(self, phase=Phase.READY, since_s=now_s, used_s=now_s)

    def begun(self) -> "EngineLife":
        """Return it with one more answer."""
        return replace(self, answers=self.answers + 1)

    def finished(self, now_s: float) -> "EngineLife":
        """Return it with one answer less."""
        return replace(self, answers=max(0, self.answers - 1), used_s=now_s)

    def died(self, now_s: float, reason: str) -> "EngineLife":
        """Return it after its process ended; one that has ended keeps its first reason."""
        if self.phase is Phase.ENDED:
            return self
        return replace(self, phase=Phase.ENDED, since_s=now_s, answers=0, reason=reason)

    def unload_at_s(self, idle_s: float = IDLE_S) -> float | None:
        """Return when it is to be unloaded if nobody asks until then; None: not by itself."""
        if self.phase is not Phase.READY or self.answers:
            return None
        return self.used_s + idle_s


def begins(now_s: float) -> EngineLife:
    """Return the life of an engine that is being started."""
    return EngineLife(Phase.LOADING, now_s, used_s=now_s)


@dataclass(frozen=True)
class Restarts:
    """How an engine's earlier lives ended, for when the next may begin."""

    failures: int = 0
    """In a row."""
    failed_s: float = 0.0
    reason: str = ""

    def after(self, life: EngineLife, was_ready_s: float | None) -> "Restarts":
        """Return them after a life has ended.

        was_ready_s: when it had loaded; None: it never did
        """
        if not life.reason:
            return Restarts()
        lasted = was_ready_s is not None and life.since_s - was_ready_s >= STEADY_S
        failures = 1 if lasted else self.failures + 1
        return Restarts(failures, life.since_s, life.reason)

    @property
    def not_before_s(self) -> float:
        """Return when the next life may begin: at once after one failure, later after more."""
        if self.failures < 2:
            return 0.0
        pause_s = FIRST_PAUSE_S * 2.0 ** min(self.failures - 2, 16)
        return self.failed_s + min(LONGEST_PAUSE_S, pause_s)
