"""Who answers which batch of a task's requests, whoever dies meanwhile.

Pure. Owns that each batch counts once: its first answers are those that count. A batch of a machine
that is lost goes to another one, and who has nothing left to do takes one that is still under way
elsewhere, in case that machine hangs.
"""

from collections.abc import Collection
from typing import Final

MOST_AT_ONCE: Final = 2
"""Machines that answer the same batch."""


class BatchPlan:
    """The batches of one call of the harness, numbered from 0."""

    def __init__(self, count: int, staying: Collection[int] = (), home: str = "") -> None:
        """`staying`: batches that only the machine called `home` may answer."""
        self._waiting = list(range(count))
        self._staying, self._home = frozenset(staying), home
        self._answering: dict[int, list[str]] = {}
        """Batch -> who is at it, those that began first in front."""
        self._answered: dict[int, str] = {}
        self._count = count

    @property
    def is_over(self) -> bool:
        """Say whether all are answered."""
        return len(self._answered) == self._count

    @property
    def answered(self) -> int:
        """Return how many are."""
        return len(self._answered)

    @property
    def answered_by(self) -> list[str]:
        """Return whose answers count, each once."""
        return sorted(set(self._answered.values()))

    def take(self, node: str) -> int | None:
        """Return the batch that a machine is to answer next; None: there is nothing for it now."""
        fresh = [batch for batch in self._waiting if self._may(node, batch)]
        if fresh:
            self._waiting.remove(fresh[0])
        again = [
            batch
            for batch, nodes in self._answering.items()
            if node not in nodes and len(nodes) < MOST_AT_ONCE and self._may(node, batch)
        ]
        taken = next(iter(fresh or again), None)
        if taken is not None:
            self._answering.setdefault(taken, []).append(node)
        return taken

    def answer(self, node: str, batch: int) -> bool:
        """Note that a machine has answered; say whether its answers are the ones that count."""
        if batch in self._answered or node not in self._answering.get(batch, ()):
            return False
        self._answered[batch] = node
        del self._answering[batch]
        return True

    def lose(self, node: str) -> list[int]:
        """Take back what a machine was at; return the batches that nobody is at any more."""
        orphans: list[int] = []
        for batch, nodes in [*self._answering.items()]:
            if node in nodes:
                nodes.remove(node)
            if not nodes:
                del self._answering[batch]
                orphans.append(batch)
        self._waiting = sorted({*self._waiting, *orphans})
        return orphans

    def _may(self, node: str, batch: int) -> bool:
        return batch not in self._staying or node == self._home
