"""What an item's tries have shown: a node never does again as it was what it couldn't.

Owns what is learnt of each node. Where memory runs out there, half as much at a time is tried, and
what can't be halved is left to others, and tried once more in the end: other work may have had the
memory. A failure that comes again in the same words, on the same node, would come for ever. Doesn't
know how much a worker begins with: that refuses once less than a single text or sequence would be
left (`workers.memory_room`).
"""

import logging
from collections import Counter
from collections.abc import Collection
from dataclasses import replace

from jupiterd.cycle.base.work_item import HALVINGS, WorkItem
from jupiterd.errors import (
    JupiterError,
    ModelTooLargeError,
    OutOfMemoryError,
    WorkFailedError,
)
from jupiterd.ids import NodeId

log = logging.getLogger(__name__)

HALVABLE = frozenset({"collect", "generate", "evaluate", "evaluate_held_out", "train_proxy"})
"""Tasks that can be done with fewer texts, sequences or programs in memory at a time."""

MAX_HALVINGS = 10
"""A worker of this version refuses long before."""


MORE_MEMORY = (
    "it isn't tried again as it was: give it a machine with more memory, or less text at a time; "
    "then jupiterctl cycle resume, or the command again"
)


class ItemFailures:
    """What an item's tries have shown of nodes."""

    def __init__(self, item: WorkItem) -> None:
        self._item = item
        self._halvings: Counter[NodeId] = Counter()
        self._too_small: set[NodeId] = set()
        self._is_last_try = False
        self._failures: set[tuple[NodeId, str, str]] = set()

    @property
    def too_small(self) -> frozenset[NodeId]:
        """The nodes where memory ran out with the least that it can be done with."""
        return frozenset(self._too_small)

    @property
    def is_last_try(self) -> bool:
        """Say whether memory ran out wherever it can be done, and one more try is left."""
        return self._is_last_try

    def fitted(self, node: NodeId) -> WorkItem:
        """Return the item as that node is to do it."""
        times = self._halvings[node]
        if not times:
            return self._item
        return replace(self._item, params={**self._item.params, HALVINGS: times})

    def learn(self, node: NodeId | None, error: JupiterError, fit: Collection[NodeId]) -> bool:
        """Take note of how a try ended; return whether the next one is another, for memory's sake.

        fit: the nodes that can do it

        Raises:
            OutOfMemoryError: memory ran out the last time, too, and there is no other way to do it.
        """
        if node is None or not isinstance(error, OutOfMemoryError):
            return False
        if isinstance(error, ModelTooLargeError):
            return self._is_too_small(node, fit)
        if self._item.task in HALVABLE and "server" not in self._item.params:
            return self._halve(node)
        if not self._is_last_try:
            return self._is_too_small(node, fit) or self._begin_last_try()
        raise OutOfMemoryError(error.message, MORE_MEMORY) from error

    def is_repeated(self, node: NodeId | None, error: JupiterError, *, is_other: bool) -> bool:
        """Say whether a worker there has failed in these very words before; take note of them.

        is_other: what it is tried with next isn't what it was
        """
        if node is None or is_other or not isinstance(error, WorkFailedError) or error.may_mend:
            return False
        failure = (node, error.code, error.message)
        is_known = failure in self._failures
        self._failures.add(failure)
        return is_known

    def _halve(self, node: NodeId) -> bool:
        self._halvings[node] += 1
        times = self._halvings[node]
        log.warning("item_halved", extra={"item": self._item.id, "node": node, "times": times})
        return times <= MAX_HALVINGS

    def _is_too_small(self, node: NodeId, fit: Collection[NodeId]) -> bool:
        """Take note that a node has too little memory; say whether another may have enough."""
        self._too_small.add(node)
        return not self._too_small.issuperset(fit)

    def _begin_last_try(self) -> bool:
        self._is_last_try = True
        self._too_small.clear()
        log.warning("item_tried_once_more", extra={"item": self._item.id})
        return True
