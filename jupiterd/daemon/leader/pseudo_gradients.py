"""What the gangs of islands tell whoever conducts the run of which they are parts, in one term.

Owns the latest word of each. Doesn't know rounds, or what is decided. A gang that a new leader has
adopted tells of its pseudo-gradient once more, whether anybody waits for it yet or not.
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
    """When we heard of it."""


class PseudoGradients:
    """The latest pseudo-gradients, and which islands have a gang just now."""

    def __init__(self) -> None:
        self._told: dict[CycleId, ReportedPseudoGradient] = {}
        self._training: set[CycleId] = set()
        self._news = asyncio.Event()

    def tell(self, island: CycleId, told: ReportedPseudoGradient) -> None:
        """Take in that an island's pseudo-gradient lies in the store of a node."""
        known = self._told.get(island)
        if known is None or _of(known) != _of(told):  # told twice, it is no later
            self._told[island] = told
        self._news.set()

    def of(self, island: CycleId, after: str) -> ReportedPseudoGradient | None:
        """Return an island's pseudo-gradient since this outer step; None: there is none yet."""
        told = self._told.get(island)
        return told if told is not None and told.stored.pseudo_gradient.after == after else None

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
        """Wait until something is told, or for so long."""
        self._news.clear()
        try:
            async with asyncio.timeout(timeout_s):
                await self._news.wait()
        except TimeoutError:
            return


def _of(told: ReportedPseudoGradient) -> tuple[str, str, NodeId]:
    """Return which pseudo-gradient it is and where, without its time: repetitions have none."""
    return told.stored.pseudo_gradient.after, told.stored.artifact, told.node
