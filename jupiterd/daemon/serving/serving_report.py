"""What each node serves: this one as it is, the others as their heartbeats tell.

Owns the report of this node, for telemetry and for whoever asks, and reading that of others.
Heartbeats come twice a second, so it is never older than that. Doesn't decide anything by it.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from jupiterd.cluster.serving.serving_rows import (
    NOTHING,
    SERVING,
    ModelLoad,
    NodeServing,
    read_serving,
)
from jupiterd.daemon.links.peers import Peers
from jupiterd.daemon.serving.local_engines import AnswerCounts, Totals
from jupiterd.ids import NodeId


class CountsAnswers(Protocol):
    """The engines of this node; `LocalEngines` is it."""

    is_open: bool
    counts: AnswerCounts

    def loads(self) -> list[ModelLoad]:
        """Return what each model does here."""
        ...


class ServingReport:
    """What every node serves, as this one knows it."""

    def __init__(
        self,
        engines: CountsAnswers,
        peers: Peers,
        trains: Callable[[], bool],
        is_pinned: Callable[[], bool],
    ) -> None:
        """`trains` says whether ranks compute here; `is_pinned`: models keep their GPU."""
        self._engines, self._peers = engines, peers
        self._trains, self._is_pinned = trains, is_pinned

    def own(self) -> NodeServing:
        """Return what this node serves."""
        models = tuple(self._engines.loads())
        is_pinned = self._is_pinned()
        if not models and not is_pinned:
            return NOTHING if self._engines.is_open else NodeServing(is_open=False)
        return NodeServing(models, self._engines.is_open, is_pinned, self._trains())

    def of(self, node: NodeId) -> NodeServing:
        """Return what a node serves, as far as this one has heard."""
        if node == self._peers.own:
            return self.own()
        peer = self._peers.get(node)
        return NOTHING if peer is None else read_serving(peer.telemetry.get(SERVING))

    @property
    def totals(self) -> Totals:
        """What was answered here since this daemon began."""
        return self._engines.counts.totals

    def telemetry(self) -> Mapping[str, Any]:
        """Return what heartbeats say of it: nothing where there is nothing to say."""
        own = self.own()
        return {} if own.says_nothing else {SERVING: own.to_plain()}
