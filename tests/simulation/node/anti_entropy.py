"""Making two nodes' ledgers equal: each sends what the other lacks.

Imitates `daemon.anti_entropy`: one exchange with each peer at a time, once more if asked meanwhile;
a new leader unites with whoever is alive before it appends.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jupiterd.errors import DiskFullError
from jupiterd.ids import NodeId
from tests.simulation.node.calls import call

if TYPE_CHECKING:
    from tests.simulation.node.leader_term import LeaderTerm
    from tests.simulation.node.process import Process

EXCHANGE_TIMEOUT_S = 10.0
UNITE_TIMEOUT_S = 2.0
BATCH_BYTES = 8000


@dataclass(frozen=True)
class Reply:
    """What a peer says in an exchange."""

    have: Mapping[str, int]
    entries: Sequence[bytes]
    more: bool
    snapshot: bytes = b""


class AntiEntropy:
    """One process's exchanges with the others."""

    def __init__(self, process: "Process") -> None:
        self._process = process
        self._replica = process.replica
        self._tips: dict[NodeId, Mapping[str, int]] = {}
        self._running: set[NodeId] = set()
        self._again: set[NodeId] = set()

    def request(self, node: NodeId) -> None:
        """See to it that an exchange with this peer begins after now."""
        if node in self._running:
            self._again.add(node)
        else:
            self._running.add(node)
            self._once(node, lambda more: self._go_on(node, more))

    def answer(self, have: Mapping[str, int], raws: Sequence[bytes]) -> Reply:
        """Take in what a peer sent and return what it lacks."""
        self._process.check_awake()
        self._absorb(raws)
        ledger = self._replica.ledger
        entries, more = ledger.lacking(have, BATCH_BYTES)
        self._process.world.witness.claimed(self._process)
        snapshot = self._replica.snapshot() if ledger.has_forgotten(have) else b""
        return Reply(ledger.tips(), [entry.raw for entry in entries], more, snapshot)

    def unite(self, leader_term: "LeaderTerm", nodes: frozenset[NodeId]) -> None:
        """Take in what these nodes hold, as far as they answer in time; then open the term."""
        self._process.world.witness.unites(self._process, leader_term, nodes)
        waiting = set(nodes)

        def answered(node: NodeId) -> None:
            waiting.discard(node)
            if not waiting:
                leader_term.open()

        def unite_with(node: NodeId) -> None:
            self._once(node, lambda more: unite_with(node) if more else answered(node))

        for node in sorted(nodes):
            unite_with(node)
        if not nodes:
            leader_term.open()
        self._process.wait(UNITE_TIMEOUT_S, lambda _own: leader_term.open())

    def spread(self) -> None:
        """Send what is new here to everybody."""
        for node in self._process.others():
            self.request(node)

    def _once(self, node: NodeId, then: Callable[[bool | None], None]) -> None:
        """Exchange once; `then` is told whether more is to be done, or None where it failed."""
        ledger = self._replica.ledger
        entries, unsent = ledger.lacking(self._tips.get(node, {}), BATCH_BYTES)
        have, raws = ledger.tips(), [entry.raw for entry in entries]

        def answered(_own: "Process", reply: Reply | None) -> None:
            if reply is None:
                then(None)
                return
            before = self._tips.get(node, {})
            try:
                self._learn(node, reply)
            except DiskFullError:
                then(None)
            else:
                is_refused = bool(raws) and reply.have == before
                then(reply.more or (unsent and not is_refused))

        call(
            self._process,
            self._process.world.network.where(node),
            lambda peer: peer.answer_exchange(self._process.node, have, raws),
            answered,
            EXCHANGE_TIMEOUT_S,
        )

    def _learn(self, node: NodeId, reply: Reply) -> None:
        self._tips[node] = reply.have
        self._absorb(reply.entries)
        if reply.snapshot:
            self._take_in(lambda: self._replica.adopt(reply.snapshot))

    def take_in(self, raws: Sequence[bytes]) -> None:
        """Take in entries that came by themselves; a full disk keeps them in memory."""
        with contextlib.suppress(DiskFullError):
            self._absorb(raws)

    def _go_on(self, node: NodeId, more: bool | None) -> None:
        is_wanted = node in self._again and more is not None
        self._again.discard(node)
        if more or is_wanted:
            self._once(node, lambda again: self._go_on(node, again))
        else:
            self._running.discard(node)

    def _absorb(self, raws: Sequence[bytes]) -> None:
        self._take_in(lambda: self._replica.absorb(raws))
        self._process.world.clones.offered(self._process, raws)

    def _take_in(self, take: Callable[[], object]) -> None:
        """Take in what came; a full disk ends the exchange, but what is in memory counts here."""
        before = len(self._replica.ledger)
        try:
            take()
        finally:
            if len(self._replica.ledger) != before:
                self._process.take_up_ledger()
