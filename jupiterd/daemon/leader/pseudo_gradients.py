"""The latest pseudo-gradient of each island, as its gang reports it to the leader, in one term.

Owns these reports. Doesn't know rounds, or what is decided. A gang that a new leader has adopted
reports its pseudo-gradient once more, whether anybody waits for it yet or not.
"""

import asyncio
from dataclasses import dataclass

from jupiterd.daemon.runtime.work_events import PseudoGradientStored
from jupiterd.ids import CycleId, NodeId


@dataclass(frozen=True)
class ReportedPseudoGradient:
    """An island's pseudo-gradient, and where it lies."""

    stored: PseudoGradientStored
    node: NodeId
    at_s: float
    """When it was reported here."""


class PseudoGradients:
    """The latest pseudo-gradients, and which islands have a gang just now."""

    def __init__(self) -> None:
        self._reported: dict[CycleId, ReportedPseudoGradient] = {}
        self._training: set[CycleId] = set()
        self._news = asyncio.Event()

    def report(self, island: CycleId, reported: ReportedPseudoGradient) -> None:
        """Take in that an island's pseudo-gradient lies in the store of a node."""
        known = self._reported.get(island)
        if known is None or _of(known) != _of(reported):  # reported twice, it is no later
            self._reported[island] = reported
        self._news.set()

    def of(self, island: CycleId, after: str) -> ReportedPseudoGradient | None:
        """Return an island's pseudo-gradient since this outer step; None: there is none yet."""
        reported = self._reported.get(island)
        is_after = reported is not None and reported.stored.pseudo_gradient.after == after
        return reported if is_after else None

    def set_training(self, island: CycleId, *, is_training: bool) -> None:
        """Take in that an island's ranks have met, or that their attempt is over."""
        if is_training:
            self._training.add(island)
        else:
            self._training.discard(island)
        self._news.set()

    def is_training(self, island: CycleId) -> bool:
        """Say whether an island has a gang whose ranks have met."""
        return island in self._training

    async def news(self, timeout_s: float) -> None:
        """Wait until something is reported, or for so long."""
        self._news.clear()
        try:
            async with asyncio.timeout(timeout_s):
                await self._news.wait()
        except TimeoutError:
            return


def _of(reported: ReportedPseudoGradient) -> tuple[str, str, NodeId]:
    """Return which pseudo-gradient it is and where, without its time: repetitions have none."""
    return reported.stored.pseudo_gradient.after, reported.stored.artifact, reported.node
