"""One item where memory runs out: on that node it is done with half as much at a time.

Owns how often that was, for each node. Doesn't know how much a worker begins with: that refuses
once less than a single text or sequence would be left (`workers.memory_room`).
"""

import logging
from collections import Counter
from collections.abc import Collection
from dataclasses import replace

from jupiterd.cycle.work import HALVINGS, WorkItem
from jupiterd.errors import JupiterError, ModelTooLargeError, OutOfMemoryError
from jupiterd.ids import NodeId

log = logging.getLogger(__name__)

HALVABLE = frozenset({"generate", "evaluate", "evaluate_held_out", "train_proxy"})
"""Tasks that can be done with fewer texts or sequences in memory at a time."""

MAX_HALVINGS = 10
"""A worker of this version refuses long before."""


class ItemMemory:
    """What an item's tries have shown of the memory of nodes."""

    def __init__(self, item: WorkItem) -> None:
        self._item = item
        self._halvings: Counter[NodeId] = Counter()
        self._too_small: set[NodeId] = set()

    def fitted(self, node: NodeId) -> WorkItem:
        """Return the item as that node is to do it."""
        times = self._halvings[node]
        if not times:
            return self._item
        return replace(self._item, params={**self._item.params, HALVINGS: times})

    def learn(self, node: NodeId | None, error: JupiterError, fit: Collection[NodeId]) -> bool:
        """Take note of how a try ended; return whether the next one is another, for memory's sake.

        fit: the nodes that can do it
        """
        if node is None or not isinstance(error, OutOfMemoryError):
            return False
        if isinstance(error, ModelTooLargeError):
            is_known = node in self._too_small
            self._too_small.add(node)
            return not is_known and not self._too_small.issuperset(fit)
        if self._item.task not in HALVABLE or "server" in self._item.params:
            return False
        self._halvings[node] += 1
        times = self._halvings[node]
        log.warning("item_halved", extra={"item": self._item.id, "node": node, "times": times})
        return times <= MAX_HALVINGS
