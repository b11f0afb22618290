"""Nodes of one cluster of which one side, or neither, knows the other as a member.

Owns how the removed are told and how members whose admission didn't come here are learnt. Imitates
`daemon.handshake` with `tell` and `pull` of `daemon.anti_entropy`; addresses are known to
everybody.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from jupiterd.ids import NodeId
from tests.simulation.node.anti_entropy import BATCH_BYTES, EXCHANGE_TIMEOUT_S, Reply
from tests.simulation.node.calls import call

if TYPE_CHECKING:
    from tests.simulation.node.process import Process

GREET_S = 2.0
HELLO_TIMEOUT_S = 3.0
COPY_TIMEOUT_S = 1.0


class Strangers:
    """One process's dealings with them."""

    def __init__(self, process: "Process") -> None:
        self._process = process
        self._known = frozenset[NodeId]()

    def keep_greeting(self) -> None:
        """Greet whoever runs and isn't a member as far as we know, again and again."""
        process = self._process
        for place, machine in process.world.machines.items():
            if place != process.place and machine.node == process.node:
                self._greet_itself(place)
            elif not process.knows(machine.node) and machine.node != process.node:
                self._greet(machine.node)
        process.wait(GREET_S, lambda own: own.strangers.keep_greeting())

    def note_members(self, members: frozenset[NodeId]) -> None:
        """Tell those at once who aren't members any more."""
        gone, self._known = self._known - members - {self._process.node}, members
        for node in sorted(gone):
            self._tell(node)

    def _greet(self, node: NodeId) -> None:
        own = self._process.node

        def answered(_process: "Process", knows_us: bool | None) -> None:
            if knows_us is None or self._process.knows(node):
                return
            if self._process.replica.ledger.state.roster.known(node) is not None:
                self._tell(node)
            elif knows_us:
                self._process.world.met["a member is learnt from itself"] += 1
                self._pull(node)

        place = self._process.world.network.where(node)
        call(self._process, place, lambda peer: peer.knows(own), answered, HELLO_TIMEOUT_S)

    def _greet_itself(self, place: NodeId) -> None:
        """Greet whoever shows our own key, as the greeter does with an address of ours."""
        process = self._process
        clones, number = process.clones, process.world.next_number()
        clones.greets(number)

        def answered(_process: "Process", is_caller: bool | None) -> None:
            if is_caller is not None and not clones.is_answered_by_itself(is_caller, place):
                process.fall_silent()

        call(process, place, lambda peer: peer.answer_own_key(number), answered, HELLO_TIMEOUT_S)

    def _tell(self, node: NodeId) -> None:
        """Send a node what it lacks, and take nothing from it: it was removed."""

        def asked(process: "Process", reply: Reply | None) -> None:
            if reply is None:
                return
            entries, _ = process.replica.ledger.lacking(reply.have, BATCH_BYTES)
            self._exchange(node, {}, [entry.raw for entry in entries], lambda *_: None)

        self._exchange(node, self._process.replica.ledger.tips(), (), asked)

    def _pull(self, node: NodeId) -> None:
        """Take in what a node has whom we don't know: entries prove themselves."""
        replica = self._process.replica

        def answered(process: "Process", reply: Reply | None) -> None:
            if reply is None:
                return
            before = len(replica.ledger)
            process.anti_entropy.take_in(reply.entries)
            if reply.more and len(replica.ledger) > before:
                self._pull(node)

        self._exchange(node, replica.ledger.tips(), (), answered)

    def _exchange(
        self,
        node: NodeId,
        have: Mapping[str, int],
        raws: Sequence[bytes],
        answered: "Callable[[Process, Reply | None], None]",
    ) -> None:
        own = self._process.node
        timeout_s = EXCHANGE_TIMEOUT_S if have else COPY_TIMEOUT_S
        call(
            self._process,
            self._process.world.network.where(node),
            lambda peer: peer.answer_exchange(own, have, raws),
            answered,
            timeout_s,
        )
