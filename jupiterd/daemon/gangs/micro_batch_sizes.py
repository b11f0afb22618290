"""How many sequences each rank holds in memory at a time: fewer where its device was too small.

Owns that number for each node of a round, which the ledger keeps with each attempt. Doesn't know
how memory runs out. The sum of a step is the same, however many micro batches it is made of.
"""

from collections.abc import Mapping, Sequence

from jupiterd.cluster.facts.attempt_facts import AttemptOpened
from jupiterd.errors import ModelTooLargeError
from jupiterd.ids import NodeId


class MicroBatchSizes:
    """The numbers in force, for one leader."""

    def __init__(self, usual: int) -> None:
        self._usual = usual
        self._default: dict[NodeId, int] = {}
        """Of those whose device has been looked at."""
        self._of_node: dict[NodeId, int] = {}

    def take_up(self, opened: Mapping[int, AttemptOpened], round_number: int) -> None:
        """Learn from the ledger what the attempts of this round have come to."""
        for attempt in sorted(opened):
            fact = opened[attempt]
            if fact.round == round_number and not fact.stage:  # else as its gang had room
                for node, size in zip(fact.gang, fact.micro_batches, strict=False):
                    self._of_node[node] = min(size, self._of_node.get(node, size))

    def most(self, gang: Sequence[NodeId]) -> int:
        """Return what all of these can hold at a time where one ran out of memory; 0: none has."""
        return min((self._of_node[node] for node in gang if node in self._of_node), default=0)

    def of(self, gang: Sequence[NodeId]) -> tuple[int, ...]:
        """Return the number of each rank."""
        return tuple(self._of_node.get(node, self._usual_of(node)) for node in gang)

    def expect(self, node: NodeId, size: int) -> None:
        """Take in what a node's device takes as long as its memory doesn't run out."""
        self._default[node] = size

    def limit(self, node: NodeId, size: int) -> None:
        """Let a node take no more at a time than there is room for just now; 0 says nothing."""
        if size:
            self._of_node[node] = min(size, self._of_node.get(node, self._usual_of(node)))

    def halve(self, node: NodeId, name: str, tried: int | None = None) -> int:
        """Let a node whose memory ran out take half as many at a time; return how many.

        tried: what ran out of it, where that is known: two ranks of a node may say so at once

        Raises:
            ModelTooLargeError: it takes one at a time already.
        """
        (now,) = self.of((node,))
        before = now if tried is None else tried
        if now < before:
            return now
        if before <= 1:
            raise ModelTooLargeError(f"{name} runs out of memory with a single sequence at a time")
        self._of_node[node] = before // 2
        return before // 2

    def _usual_of(self, node: NodeId) -> int:
        return self._default.get(node, self._usual)
